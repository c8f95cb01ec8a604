package server_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A Romanian sale is cleared by the ministry, and the archive that is its legal
// original can be downloaded: what was filed, and the signature of it.
func TestARomanianSaleIsClearedAndItsArchiveIsDownloaded(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	a := realAuthorities(t)["RO"]
	got := c.outcome(t, c.submit(t, "/v1/transactions", p.abroad(t, a, "RO-ARCHIVE-1")))
	a.checkSuccess(t, c, "RO", got)
	var archive []byte
	for _, entry := range got["attachments"].([]any) {
		if at := entry.(object); at["kind"] == "RECEIPT" {
			archive = c.want(t, 200, http.MethodGet, "/invoicing/v1/invoices/"+at["resource_id"].(string)+"/zip", nil).body
		}
	}
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	index := got["tax_authority_id_1"].(string)
	found := map[string]string{}
	for _, f := range files.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		found[f.Name] = string(text)
	}
	if !strings.Contains(found[index+".xml"], ">RO-ARCHIVE-1<") || !strings.Contains(found["semnatura_"+index+".xml"], "SignatureValue") || len(found) != 2 {
		t.Errorf("the archive of %s has %d files: %q", index, len(found), found)
	}
}
