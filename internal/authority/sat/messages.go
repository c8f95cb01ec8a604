package sat

// refusal is a code of SAT's or the provider's, with its words.
type refusal struct{ code, message string }

// words are those of Anexo 20, "Matriz de errores CFDI 4.0", of that of the
// complement Pagos 2.0, and of the providers' lists.
var words = map[string]string{
	"301":       "XML mal formado",
	"302":       "Sello mal formado o inválido",
	"303":       "Sello no corresponde a emisor",
	"304":       "Certificado revocado o caduco",
	"305":       "La fecha de emisión no está dentro de la vigencia del CSD del Emisor",
	"306":       "El certificado no es de tipo CSD",
	"307":       "El comprobante contiene un timbre previo.",
	"401":       "Fecha y hora de generación fuera de rango",
	"603":       "El CFDI no contiene un timbre previo",
	"CFDI3307":  "Timbre duplicado. El customId proporcionado está duplicado.",
	"CFDI40102": "El resultado de la digestión debe ser igual al resultado de la desencripción del sello.",
	"CFDI40105": "Si el campo MetodoPago contiene el valor PPD, el campo FormaPago debe contener el valor 99.",
	"CFDI40108": "El TipoDeComprobante es I, E o N, el importe registrado en el campo SubTotal no es igual a la suma de los importes de los conceptos registrados.",
	"CFDI40107": "El valor de este campo SubTotal excede la cantidad de decimales que soporta la moneda.",
	"CFDI40110": "El valor registrado en el campo Descuento no es menor o igual que el campo SubTotal.",
	"CFDI40111": "El TipoDeComprobante es I, E o N, y el campo Descuento no es igual a la suma de los descuentos registrados en los conceptos.",
	"CFDI40112": "El valor del campo Descuento excede la cantidad de decimales que soporta la moneda.",
	"CFDI40115": "El campo TipoCambio se debe registrar cuando el campo Moneda tiene un valor distinto de MXN y XXX.",
	"CFDI40119": "El campo Total no corresponde con la suma del subtotal, menos los descuentos aplicables, más las contribuciones recibidas menos los impuestos retenidos.",
	"CFDI40122": "El atributo Exportacion contiene el valor 02 y no existe el complemento para comercio exterior.",
	"CFDI40130": "El nodo InformacionGlobal debe existir si, y solo si, el TipoDeComprobante es I y el receptor es XAXX010101000 con el nombre PUBLICO EN GENERAL.",
	"CFDI40132": "El valor del campo Periodicidad es 05 y el RegimenFiscal del emisor no es 621.",
	"CFDI40134": "El valor del campo Meses debe estar entre 01 y 12 cuando la Periodicidad es distinta de 05.",
	"CFDI40135": "El valor del campo Meses debe estar entre 13 y 18 cuando la Periodicidad es 05.",
	"CFDI40136": "El valor del campo Año debe ser el año en curso o el inmediato anterior.",
	"CFDI40138": "El campo Nombre del emisor, debe encontrarse en la lista de RFC inscritos no cancelados en el SAT.",
	"CFDI40139": "El campo Nombre del emisor, debe pertenecer al nombre asociado al RFC registrado en el campo Rfc del Emisor.",
	"CFDI40141": "La clave del campo RegimenFiscal debe corresponder con el tipo de persona (física o moral) del emisor.",
	"CFDI40145": "El campo Nombre del receptor, debe pertenecer al nombre asociado al RFC registrado en el campo Rfc del Receptor.",
	"CFDI40149": "El campo DomicilioFiscalReceptor debe ser igual al LugarExpedicion cuando el RFC del receptor es genérico.",
	"CFDI40158": "La clave del campo RegimenFiscalReceptor debe corresponder con el tipo de persona (física o moral) del receptor.",
	"CFDI40159": "La clave del campo RegimenFiscalReceptor debe ser 616 cuando el RFC del receptor es genérico.",
	"CFDI40161": "La clave del campo UsoCFDI debe corresponder con el tipo de persona (física o moral) y el régimen del receptor conforme al catálogo c_UsoCFDI.",
	"CFDI40166": "El valor del campo ValorUnitario debe ser mayor que cero (0) cuando el tipo de comprobante es I, E o N.",
	"CFDI40167": "El valor del campo Importe no se encuentra entre el límite inferior y superior permitido.",
	"CFDI40168": "El valor del campo Descuento excede la cantidad de decimales registrados en el campo Importe del concepto.",
	"CFDI40169": "El valor del campo Descuento es mayor que el campo Importe del concepto.",
	"CFDI40171": "El campo ObjetoImp contiene el valor 02, por lo que el nodo hijo Impuestos del nodo concepto debe existir.",
	"CFDI40172": "El nodo hijo Impuestos del nodo concepto, no debe existir.",
	"CFDI40180": "El valor del campo Importe que corresponde a Traslado no se encuentra entre el límite inferior y superior permitido.",
	"CFDI40186": "El valor del campo Importe que corresponde a Retención no se encuentra entre el límite inferior y superior permitido.",
	"CFDI40202": "El valor del campo TotalImpuestosRetenidos excede la cantidad de decimales que soporta la moneda.",
	"CFDI40203": "El valor del campo TotalImpuestosRetenidos debe ser igual a la suma de los importes registrados en el elemento hijo Retencion.",
	"CFDI40204": "El valor del campo TotalImpuestosTrasladados excede la cantidad de decimales que soporta la moneda.",
	"CFDI40205": "El valor del campo TotalImpuestosTrasladados no es igual a la suma de los importes registrados en el elemento hijo Traslado.",
}

// refuse is the refusal of a code.
func refuse(code string) refusal {
	if message, known := words[code]; known {
		return refusal{code, message}
	}
	return refusal{"CFDI40999", "Error no clasificado"}
}
