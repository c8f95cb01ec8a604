package sat

// refusal is a code of SAT's or the provider's, with its words.
type refusal struct{ code, message string }

// The words of Anexo 20, "Matriz de validaciones", and of the providers' lists.
func refuse(code string) refusal {
	switch code {
	case "301":
		return refusal{code, "XML mal formado"}
	case "302":
		return refusal{code, "Sello mal formado o inválido"}
	case "303":
		return refusal{code, "Sello no corresponde a emisor"}
	case "304":
		return refusal{code, "Certificado revocado o caduco"}
	case "305":
		return refusal{code, "La fecha de emisión no está dentro de la vigencia del CSD del Emisor"}
	case "307":
		return refusal{code, "El comprobante contiene un timbre previo."}
	case "401":
		return refusal{code, "Fecha y hora de generación fuera de rango"}
	case "603":
		return refusal{code, "El CFDI no contiene un timbre previo"}
	case "CFDI3307":
		return refusal{code, "Timbre duplicado. El customId proporcionado está duplicado."}
	case "CFDI40102":
		return refusal{code, "El resultado de la digestión debe ser igual al resultado de la desencripción del sello."}
	case "CFDI40105":
		return refusal{code, "Si el campo MetodoPago contiene el valor PPD, el campo FormaPago debe contener el valor 99."}
	case "CFDI40108":
		return refusal{code, "El TipoDeComprobante es I, E o N, el importe registrado en el campo SubTotal no es igual a la suma de los importes de los conceptos registrados."}
	case "CFDI40110":
		return refusal{code, "El valor registrado en el campo Descuento no es menor o igual que el campo SubTotal, o no es igual a la suma de los descuentos de los conceptos."}
	case "CFDI40115":
		return refusal{code, "El campo TipoCambio se debe registrar cuando el campo Moneda tiene un valor distinto de MXN y XXX."}
	case "CFDI40118":
		return refusal{code, "El campo Total no corresponde con la suma del subtotal, menos los descuentos aplicables, más las contribuciones recibidas menos los impuestos retenidos."}
	case "CFDI40130":
		return refusal{code, "El nodo InformacionGlobal debe existir si, y solo si, el receptor es XAXX010101000 con el nombre PUBLICO EN GENERAL."}
	case "CFDI40138":
		return refusal{code, "El RFC del emisor no corresponde al del certificado de sello digital."}
	case "CFDI40141":
		return refusal{code, "La clave del campo RegimenFiscal debe corresponder con el tipo de persona (física o moral) del emisor."}
	case "CFDI40145":
		return refusal{code, "El campo Nombre del receptor, debe pertenecer al nombre asociado al RFC registrado en el campo Rfc del Receptor."}
	case "CFDI40149":
		return refusal{code, "El campo DomicilioFiscalReceptor debe ser igual al LugarExpedicion cuando el RFC del receptor es genérico."}
	case "CFDI40158":
		return refusal{code, "La clave del campo RegimenFiscalReceptor debe corresponder con el tipo de persona (física o moral) del receptor."}
	case "CFDI40161":
		return refusal{code, "La clave del campo UsoCFDI debe corresponder con el tipo de persona (física o moral) y el régimen del receptor conforme al catálogo c_UsoCFDI."}
	case "CFDI40166":
		return refusal{code, "El valor del campo ValorUnitario debe ser mayor que cero (0) cuando el tipo de comprobante es I, E o N."}
	case "CFDI40167":
		return refusal{code, "El valor del campo Importe no se encuentra entre el límite inferior y superior permitido."}
	case "CFDI40171":
		return refusal{code, "El nodo Impuestos del concepto no corresponde con el valor del campo ObjetoImp."}
	case "CFDI40180":
		return refusal{code, "El valor del campo Importe que corresponde a Traslado no se encuentra entre el límite inferior y superior permitido."}
	case "CFDI40186":
		return refusal{code, "El valor del campo Importe que corresponde a Retención no se encuentra entre el límite inferior y superior permitido."}
	case "CFDI40209":
		return refusal{code, "El valor del campo TotalImpuestosTrasladados o TotalImpuestosRetenidos no es igual a la suma de los importes registrados en los conceptos."}
	}
	return refusal{"CFDI40999", "Error no clasificado"}
}
