package xx

import (
	"crypto/hmac"
	"net/http"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/xxwire"
	"tributary/internal/strictjson"
)

// pathReceipts is where the authority tells its decisions, below our address.
const pathReceipts = "/receipts"

const callbackBytesMax = 64 << 10

func callbacks() *country.Callbacks { return &country.Callbacks{Read: readCallback} }

// readCallback believes whoever knows the platform's key. Without one of its own a
// platform has the key of nobody, which everybody can derive: only a simulated
// authority is believed with it.
func readCallback(at country.Endpoint, c country.Call) ([]country.Message, country.CallReply, error) {
	if c.Path != pathReceipts {
		return nil, country.CallReply{}, fault.New(fault.NotFound, "the authority calls %s only", pathReceipts)
	}
	if c.Method != http.MethodPost {
		return nil, country.CallReply{Status: http.StatusMethodNotAllowed, Header: http.Header{"Allow": {http.MethodPost}}}, nil
	}
	key := at.Identity.Secrets[secretPlatform]
	switch {
	case key == "" && at.Simulated:
		key = xxwire.PlatformKey("")
	case key == "":
		return nil, country.CallReply{}, fault.New(fault.Unauthenticated, "no key of the platform is set: nobody can sign")
	}
	if !hmac.Equal([]byte(c.Header.Get(xxwire.HeaderPlatform)), []byte(xxwire.PlatformMAC(key, c.Body))) {
		return nil, country.CallReply{}, fault.New(fault.Unauthenticated, "the call is not signed with the platform's key")
	}
	var said xxwire.Callback
	if err := strictjson.Unmarshal(c.Body, callbackBytesMax, "the callback", &said); err != nil {
		return nil, country.CallReply{}, err
	}
	if said.ID == "" || said.Key == "" {
		return nil, country.CallReply{}, fault.New(fault.Invalid, "a callback has id, key and receipt")
	}
	receipt, err := receiptOf(said.Receipt, c.Body)
	if err != nil {
		return nil, country.CallReply{}, fault.New(fault.Invalid, "the receipt cannot be read").Because(err)
	}
	return []country.Message{{Key: said.ID, Handle: said.Key, Receipt: receipt, Raw: c.Body}},
		country.CallReply{Status: http.StatusNoContent}, nil
}
