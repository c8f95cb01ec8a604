package aeat

import "tributary/internal/xmltree"

// content is what an invoice says beside its name, as a query shows it. Of a
// cancelled one there is none: its last record, the cancellation, says nothing.
type content struct {
	Method     string      `json:"method,omitempty"` // TipoRectificativa
	Rectified  []invoiceID `json:"rectified,omitempty"`
	Recipients []recipient `json:"recipients,omitempty"`
	Quota      string      `json:"quota,omitempty"`
	Total      string      `json:"total,omitempty"`
}

// recipient is an IDDestinatario.
type recipient struct {
	Name    string `json:"name"`
	NIF     string `json:"nif,omitempty"`
	Country string `json:"country,omitempty"`
	IDType  string `json:"id_type,omitempty"`
	ID      string `json:"id,omitempty"`
}

func readContent(e *xmltree.Element) content {
	c := content{Method: e.Value("TipoRectificativa"), Quota: e.Value("CuotaTotal"), Total: e.Value("ImporteTotal")}
	for _, of := range e.At("FacturasRectificadas").All("IDFacturaRectificada") {
		c.Rectified = append(c.Rectified, readID(of))
	}
	for _, to := range e.At("Destinatarios").All("IDDestinatario") {
		c.Recipients = append(c.Recipients, recipient{to.Value("NombreRazon"), to.Value("NIF"),
			to.Value("IDOtro", "CodigoPais"), to.Value("IDOtro", "IDType"), to.Value("IDOtro", "ID")})
	}
	return c
}

func (c *content) write(w *xmltree.Writer) {
	w.Maybe("sfLRRC:TipoRectificativa", c.Method)
	if len(c.Rectified) > 0 {
		w.Start("sfLRRC:FacturasRectificadas")
		for _, id := range c.Rectified {
			w.Start("sfLRRC:IDFacturaRectificada")
			id.write(w)
			w.End()
		}
		w.End()
	}
	if len(c.Recipients) > 0 {
		w.Start("sfLRRC:Destinatarios")
		for _, to := range c.Recipients {
			w.Start("sfLRRC:IDDestinatario")
			w.Leaves("sf:NombreRazon", to.Name, "?sf:NIF", to.NIF)
			if to.ID != "" {
				w.Start("sf:IDOtro")
				w.Leaves("?sf:CodigoPais", to.Country, "sf:IDType", to.IDType, "sf:ID", to.ID)
				w.End()
			}
			w.End()
		}
		w.End()
	}
	w.Leaves("?sfLRRC:CuotaTotal", c.Quota, "?sfLRRC:ImporteTotal", c.Total)
}
