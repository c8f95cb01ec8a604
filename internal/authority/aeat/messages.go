package aeat

// Message is AEAT's own text of an error, from its list errores.properties. It
// has three chapters: codes 41xx refuse a whole call, 1xxx and 3xxx a record,
// and 2xxx are told of a record that is taken all the same.
func Message(code string) string {
	switch code {
	case "1100":
		return "Valor o tipo incorrecto del campo."
	case "1101":
		return "El valor del campo CodigoPais es incorrecto."
	case "1102":
		return "El valor del campo IDType es incorrecto."
	case "1103":
		return "El valor del campo ID es incorrecto."
	case "1104":
		return "El valor del campo NumSerieFactura es incorrecto."
	case "1105":
		return "El valor del campo FechaExpedicionFactura es incorrecto."
	case "1106":
		return "El valor del campo TipoFactura no está incluido en la lista de valores permitidos."
	case "1107":
		return "El valor del campo TipoRectificativa es incorrecto."
	case "1108":
		return "El NIF del IDEmisorFactura debe ser el mismo que el NIF del ObligadoEmision."
	case "1109":
		return "El NIF no está identificado en el censo de la AEAT."
	case "1111":
		return "El campo CodigoPais es obligatorio cuando IDType es distinto de NIF-IVA (02)."
	case "1112":
		return "El campo FechaExpedicionFactura es superior a la fecha actual."
	case "1114":
		return "Si la factura es de tipo rectificativa, el campo TipoRectificativa debe tener valor."
	case "1115":
		return "Si la factura no es de tipo rectificativa, el campo TipoRectificativa no debe tener valor."
	case "1116":
		return "Debe informarse el campo FacturasSustituidas sólo si la factura es de tipo F3."
	case "1117":
		return "Si la factura no es de tipo rectificativa, el bloque FacturasRectificadas no podrá venir informado."
	case "1118":
		return "Si la factura es de tipo rectificativa por sustitución el bloque ImporteRectificacion es obligatorio."
	case "1119":
		return "Si la factura no es de tipo rectificativa por sustitución el bloque ImporteRectificacion no debe tener valor."
	case "1123":
		return "El formato del NIF es incorrecto."
	case "1124":
		return "El valor del campo TipoImpositivo no está incluido en la lista de valores permitidos."
	case "1126":
		return "El valor del CodigoPais solo puede ser ES cuando el IDType sea Pasaporte (03) o No Censado (07). Si IDType es No Censado (07) el CodigoPais debe ser ES (España)."
	case "1127":
		return "El valor del campo TipoRecargoEquivalencia no está incluido en la lista de valores permitidos."
	case "1130":
		return "El campo NumSerieFactura contiene caracteres no permitidos."
	}
	return messageOfAmounts(code)
}

func messageOfAmounts(code string) string {
	switch code {
	case "1138":
		return "El campo Macrodato solo debe ser informado con valor S si el valor de ImporteTotal es igual o superior a +-100.000.000"
	case "1139":
		return "Si el campo ImporteTotal está informado y es igual o superior a +-100.000.000 el campo Macrodato debe estar informado con valor S."
	case "1142":
		return "El campo CuotaRepercutida tiene un valor incorrecto para el valor de los campos BaseImponibleOimporteNoSujeto y TipoImpositivo suministrados."
	case "1143":
		return "Los campos CuotaRepercutida y BaseImponibleOimporteNoSujeto deben tener el mismo signo."
	case "1147":
		return "Cuando ClaveRegimen sea igual a 14 la FechaOperacion es obligatoria y debe ser posterior a la FechaExpedicionFactura."
	case "1148":
		return "Cuando ClaveRegimen sea igual a 14, el campo TipoFactura debe ser F1, R1, R2, R3 o R4."
	case "1149":
		return "Cuando ClaveRegimen sea igual a 14, el NIF de Destinatarios debe estar identificado y comenzar por P, Q, S o V."
	case "1150":
		return "Cuando TipoFactura sea F2 y no este informado NumRegistroAcuerdoFacturacion o FacturaSinIdentifDestinatarioArt61d no sea S el sumatorio de BaseImponibleOimporteNoSujeto y CuotaRepercutida de todas las líneas de detalle no podrá ser superior a 3.000."
	case "1152":
		return "La fecha de expedición no puede ser inferior al 28 de octubre de 2024."
	case "1153":
		return "Valor del campo RechazoPrevio no válido, solo podrá incluirse el campo RechazoPrevio con valor X si se ha informado el campo Subsanacion y tiene el valor S."
	case "1157":
		return "El campo Cupon solo podrá ser informado con S si TipoFactura es de tipo R1 o R5."
	case "1158":
		return "Se está informando EmitidaPorTerceroODestinatario, pero no se informa el bloque correspondiente."
	case "1161":
		return "El valor del campo RechazoPrevio no es válido, no podrá incluirse el campo RechazoPrevio con valor S si no se ha informado del campo Subsanacion o tiene el valor N."
	}
	return messageOfBlocks(code)
}

func messageOfBlocks(code string) string {
	switch code {
	case "1171":
		return "El valor del campo Subsanacion o RechazoPrevio no se encuentra en los valores permitidos."
	case "1176":
		return "El valor de campo NIF del bloque SistemaInformatico es incorrecto."
	case "1177":
		return "El valor de campo IdSistemaInformatico del bloque SistemaInformatico es incorrecto."
	case "1181":
		return "El valor del campo CalificacionOperacion es incorrecto."
	case "1182":
		return "El valor del campo OperacionExenta es incorrecto."
	case "1183":
		return "El campo FacturaSimplificadaArticulos7273 solo se podrá rellenar con S si TipoFactura es de tipo F1 o F3 o R1 o R2 o R3 o R4."
	case "1185":
		return "El campo FacturaSinIdentifDestinatarioArt61d solo se podrá rellenar con S si TipoFactura es de tipo F2 o R5."
	case "1186":
		return "Si EmitidaPorTercerosODestinatario es igual a T el bloque Tercero será de cumplimentación obligatoria."
	case "1187":
		return "Sólo se podrá cumplimentarse el bloque Tercero si el valor de EmitidaPorTercerosODestinatario es T."
	case "1188":
		return "El NIF del bloque Tercero debe ser diferente al NIF del ObligadoEmision."
	case "1189":
		return "Si TipoFactura es F1 o F3 o R1 o R2 o R3 o R4 el bloque Destinatarios tiene que estar cumplimentado."
	case "1190":
		return "Si TipoFactura es F2 o R5 el bloque Destinatarios no puede estar cumplimentado."
	case "1191":
		return "Si TipoFactura es R3 sólo se admitirá NIF o IDType = No Censado (07)."
	case "1192":
		return "Si TipoFactura es R2 sólo se admitirá NIF o IDType = No Censado (07) o NIF-IVA (02)."
	case "1197":
		return "Si CalificacionOperacion tiene valor Operación Sujeta y No exenta - Con inversión del sujeto pasivo (S2) TipoFactura solo puede ser F1, F3, R1, R2, R3 y R4."
	case "1198":
		return "Si CalificacionOperacion tiene valor Operación Sujeta y No exenta - Con inversión del sujeto pasivo (S2) TipoImpositivo y CuotaRepercutida deberan tener valor 0."
	case "1199":
		return "Si Impuesto es '01' (IVA), '03' (IGIC) o no se cumplimenta y ClaveRegimen es 01 no pueden marcarse la OperacionExenta E2, E3."
	case "1200":
		return "Si ClaveRegimen es 03 CalificacionOperacion sólo puede ser Operación Sujeta y No exenta - Sin inversión del sujeto pasivo (S1)."
	case "1201":
		return "Si ClaveRegimen es 04 CalificacionOperacion sólo puede ser Operación Sujeta y No exenta - Con inversión del sujeto pasivo (S2) o bien OperacionExenta."
	case "1202":
		return "Si ClaveRegimen es 06 TipoFactura no puede ser F2, F3, R5 y BaseImponibleACoste debe estar cumplimentado."
	case "1203":
		return "Si ClaveRegimen es 07 OperacionExenta no puede ser E2, E3, E4 y E5 o CalificacionOperacion no puede ser S2, N1, N2."
	case "1205":
		return "Si ClaveRegimen es 10 CalificacionOperacion tiene que ser N1, TipoFactura F1 y Destinatarios estar identificada mediante NIF."
	case "1206":
		return "Si ClaveRegimen es 11 TipoImpositivo ha de ser 21%."
	case "1207":
		return "La CuotaRepercutida solo podrá ser distinta de 0 si CalificacionOperacion es Operación Sujeta y No exenta - Sin inversión del sujeto pasivo (S1)."
	case "1208":
		return "Si CalificacionOperacion es Operación Sujeta y No exenta - Sin inversión del sujeto pasivo (S1) y BaseImponibleACoste no está cumplimentada, TipoImpositivo y CuotaRepercutida son obligatorios."
	case "1218":
		return "El valor del campo Impuesto es incorrecto."
	case "1220":
		return "El valor del campo NombreSistemaInformatico es incorrecto."
	case "1224":
		return "Si se informa el campo GeneradoPor deberá existir la agrupación Generador y viceversa."
	case "1235":
		return "El valor del campo TipoImpositivo es incorrecto, el valor informado sólo es permitido para FechaOperacion o FechaExpedicionFactura posterior o igual a 1 de octubre de 2024 e inferior o igual a 31 de diciembre de 2024."
	case "1194":
		return "El valor del campo TipoImpositivo es incorrecto, el valor informado solo es permitido para FechaOperacion o FechaExpedicionFactura posterior o igual a 1 de julio de 2022 e inferior o igual a 30 de septiembre de 2024."
	case "1237":
		return "El valor del campo CalificacionOperacion está informado como Operación No sujeta (N1 o N2) y el impuesto es IVA. No se puede informar de los campos TipoImpositivo, CuotaRepercutida, TipoRecargoEquivalencia y CuotaRecargoEquivalencia."
	case "1238":
		return "Si la operacion es exenta no se puede informar ninguno de los campos TipoImpositivo, CuotaRepercutida, TipoRecargoEquivalencia y CuotaRecargoEquivalencia."
	}
	return messageOfForm(code)
}

func messageOfForm(code string) string {
	switch code {
	case "1244":
		return "El campo FechaHoraHusoGenRegistro tiene un formato incorrecto."
	case "1245":
		return "Si el campo Impuesto está vacío o tiene valor IVA(01) o IPSI(02) o IGIC(03) el campo ClaveRegimen debe de estar cumplimentado."
	case "1246":
		return "El valor del campo ClaveRegimen es incorrecto."
	case "1247":
		return "El valor del campo TipoHuella es incorrecto."
	case "1248":
		return "El valor del campo Periodo es incorrecto."
	case "1251":
		return "El valor del campo IdVersion tiene un valor incorrecto"
	case "1252":
		return "Si ClaveRegimen es 08 el campo CalificacionOperacion tiene que tener el valor Operación No sujeta por reglas de localización (N2) e ir siempre informado."
	case "1253":
		return "El valor del campo RefExterna tiene un valor incorrecto."
	case "1257":
		return "El campo BaseImponibleACoste solo puede estar cumplimentado si la ClaveRegimen es = '06' o Impuesto = '02' (IPSI) o Impuesto = '05' (Otros)."
	case "1262":
		return "La longitud de huella no cumple con las especificaciones."
	case "1274":
		return "Valor incorrecto campo primer registro"
	case "1275":
		return "Valor incorrecto campo RechazoPrevio"
	case "1276":
		return "Valor incorrecto campo SinRegistroPrevio"
	case "1281":
		return "Solo se puede cumplimentar TipoRecargoEquivalencia y CuotaRecargoEquivalencia cuando CalificacionOperacion tiene valor Operación Sujeta y No exenta - Sin inversión del sujeto pasivo (S1)"
	case "1284":
		return "Si se ha informado de TipoRecargoEquivalencia tambien se debe informar de CuotaRecargoEquivalencia y viceversa."
	case "1286":
		return "Si el impuesto es IVA(01), IGIC(03) o vacio, si ClaveRegimen es 02 solo se podrá informar OperacionExenta."
	case "1289":
		return "Si Impuesto es IVA(01) o vacio y si el campo OperacionExenta es igual a 'E5' sólo deberá existir la agrupación IDOtro en el bloque Destinatario."
	case "1293":
		return "Si ClaveRegimen es 20 el campo CalificacionOperacion tiene que tener el valor Operación No sujeta por reglas de localización (N2) e ir siempre informado."
	}
	return messageOfDays(code)
}

func messageOfDays(code string) string {
	switch code {
	case "1121":
		return "El campo ID no está identificado en el censo de la AEAT."
	case "1125":
		return "El valor del campo FechaOperacion tiene una fecha superior a la permitida."
	case "1131":
		return "El valor del campo ID ha de ser el NIF de una persona física cuando el campo IDType tiene valor No Censado (07)."
	case "1134":
		return "El valor del campo FechaOperacion no debe ser inferior a la fecha actual menos veinte años."
	case "1145":
		return "Formato de fecha incorrecto."
	case "1146":
		return "Sólo se permite que la fecha de expedicion de la factura sea anterior a la fecha operación si los detalles del desglose son ClaveRegimen 14 o 15 e Impuesto 01, 03 o vacío."
	case "1173":
		return "Sólo se permite que la fecha de operación sea superior a la fecha actual si los detalles del desglose son ClaveRegimen 14 o 15 e Impuesto IVA(01) o IGIC(03) o vacío."
	case "1211":
		return "El bloque Tercero no puede estar identificado con IDType=No Censado (07)."
	case "1290":
		return "El campo ID no contiene un NIF con formato correcto."
	}
	return messageOfCalls(code)
}

func messageOfCalls(code string) string {
	switch code {
	case "2000":
		return "El cálculo de la huella suministrada es incorrecta."
	case "2001":
		return "El NIF del bloque Destinatarios no está identificado en el censo de la AEAT."
	case "2002":
		return "La longitud de huella del registro anterior no cumple con las especificaciones."
	case "2003":
		return "El contenido de la huella del registro anterior no cumple con las especificaciones."
	case "2004":
		return "El valor del campo FechaHoraHusoGenRegistro debe ser la fecha actual del sistema de la AEAT, admitiéndose un margen de error de: 240 segundos."
	case "2005":
		return "El campo ImporteTotal tiene un valor incorrecto para el valor de los campos BaseImponibleOimporteNoSujeto, CuotaRepercutida y CuotaRecargoEquivalencia suministrados."
	case "2006":
		return "El campo CuotaTotal tiene un valor incorrecto para el valor de los campos CuotaRepercutida y CuotaRecargoEquivalencia suministrados."
	case "2007":
		return "No debe informarse como primer registro, existen facturas emitidas con el obligado emisión y el sistema informático actual."
	case "3000":
		return "Registro de facturación duplicado."
	case "3002":
		return "No existe el registro de facturación."
	case "4102":
		return "El XML no cumple el esquema. Falta informar campo obligatorio."
	case "4103":
		return "Se ha producido un error inesperado al parsear el XML."
	case "4112":
		return "El titular del certificado debe ser Obligado Emisión, Colaborador Social, Apoderado o Sucesor."
	case "4114":
		return "El XML no cumple con el esquema: se ha superado el límite máximo permitido de facturas a registrar."
	case "4116":
		return "Error en la cabecera: el campo NIF del bloque ObligadoEmision tiene un formato incorrecto."
	case "4117":
		return "Error en la cabecera: el campo NIF del bloque Representante tiene un formato incorrecto."
	case "4118":
		return "Error técnico: la dirección no se corresponde con el fichero de entrada."
	case "4121":
		return "Error en la cabecera: el valor del campo Incidencia es incorrecto."
	case "4126":
		return "Error en la cabecera: el campo RefRequerimiento solo debe informarse en sistemas en remisiones al endpoint del servicio a usar para la contestación a requerimientos de registros de facturación."
	case "4134":
		return "Servicio no activo."
	case "4135":
		return "Esta URL no puede ser utilizada mediante GET."
	case "4138":
		return "Petición vacía en el XML o encoding incorrecto."
	case "4141":
		return "Le informamos que su acceso al sistema VERIFACTU ha sido suspendido temporalmente para realizar cualquier solicitud."
	}
	return "Error " + code
}
