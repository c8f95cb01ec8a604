package sdiwire

// How SdI signs its messages: XAdES-BES, enveloped, RSA with SHA-256, with
// references to the document, to the signed properties and to the key. The one
// to the document leaves out the signature by an XPath filter where others name
// the transform "enveloped-signature", and names no canonical form, so that its
// octets are those of Canonical XML 1.0; SignedInfo is in the exclusive form.
const (
	SpaceSignature = "http://www.w3.org/2000/09/xmldsig#"
	SpaceXAdES     = "http://uri.etsi.org/01903/v1.3.2#"
	SpaceFilter    = "http://www.w3.org/2002/06/xmldsig-filter2" // also the transform's name

	MethodRSA            = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
	MethodSHA256         = "http://www.w3.org/2001/04/xmlenc#sha256"
	TypeSignedProperties = "http://uri.etsi.org/01903#SignedProperties"

	FilterKind  = "subtract"
	FilterXPath = "/descendant::ds:Signature"
)
