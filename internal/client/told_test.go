package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/client"
)

// What the service says of a field is said of the line and column that it came
// from, with what to do about it.
func TestSubmitNamesTheCellOfARefusedField(t *testing.T) {
	t.Parallel()
	s := &scripted{do: func(_ int, w http.ResponseWriter) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"message":"the transaction is not valid","errors":[
			{"code":"field_not_valid","type":"validation","field":"items.1.unit_price","message":"items.1.unit_price must be an integer"},
			{"code":"field_required","type":"validation","field":"items.0.tax_breakdowns.0.regime","message":"items.0.tax_breakdowns.0.regime is required"},
			{"code":"field_required","type":"validation","field":"customer.address.city","message":"customer.address.city is required"}]}`)
	}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	file := write(t, filepath.Join(t.TempDir(), "two.csv"),
		"transaction_id,item_name,item_unit_price,tax_rate\nx,Tea,100,25\nx,Milk,75.7,25\n")
	out, errs, err := submit(t, client.Submission{Paths: []string{file}, URL: srv.URL})
	if err == nil {
		t.Fatalf("%s%s", out, errs)
	}
	for _, want := range []string{"items.1.unit_price must be an integer (line 3, column item_unit_price)",
		"(line 2, column tax_regime)", "(column customer_address_city)", "\nfield_required: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// A service that is not there is told of with the first attempt, not with the last.
func TestSubmitTellsOfADeadServiceAtOnce(t *testing.T) {
	t.Parallel()
	s := &scripted{do: func(n int, w http.ResponseWriter) {
		if n == 1 {
			panic(http.ErrAbortHandler)
		}
		accept(w, n)
	}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	file := write(t, filepath.Join(t.TempDir(), "one.json"), sale("s", "one", "1"))
	_, errs, err := submit(t, client.Submission{Paths: []string{file}, URL: srv.URL})
	if err != nil || strings.Count(errs, "Cannot connect to "+srv.URL) != 1 ||
		!strings.Contains(errs, "(1 attempt so far); retrying for another 5m0s") {
		t.Errorf("%v\n%s", err, errs)
	}
}
