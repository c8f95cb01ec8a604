package peppol

import (
	"strings"
	"testing"
	"time"

	"tributary/internal/mutate"
)

// The first is a live record of the network, the second OpenPeppol's own example.
func TestLabelsOfTheRegistry(t *testing.T) {
	for p, want := range map[participant]string{
		{"0242", "001066"}: "tit36qle62y2yvwovq5nxg6rquymoabfh4ng7xvgtzmaehfre5pa",
		{"9915", "TEST"}:   "eh5boavaktmbgzyh2a63dz4qov33fvp5nsdvqklucfraayoodw6a",
	} {
		if got := label(p); got != want {
			t.Errorf("%v is %s", p, got)
		}
	}
}

func TestRecordsOfRegisters(t *testing.T) {
	for regexp, want := range map[string]string{"!.*!https://smp.example!": "https://smp.example",
		"!^.*$!https://smp.example/a!": "https://smp.example/a", "/.*/x/": "x",
		"!a.*!https://smp.example!": "", "": "", "!!": "", "!.*!https://smp.example": ""} {
		if got := (naptr{Flags: "u", Services: "meta:smp", Regexp: regexp}).uri(); got != want {
			t.Errorf("%q leads to %q", regexp, got)
		}
	}
	if (naptr{Flags: "S", Services: "Meta:SMP", Regexp: "!.*!x!"}).uri() != "" ||
		(naptr{Flags: "U", Services: "Meta:X", Regexp: "!.*!x!"}).uri() != "" {
		t.Error("a record of another kind leads somewhere")
	}
}

// Whatever a name server answers, it is read or refused, never a panic.
func FuzzAnswer(f *testing.F) {
	question, id, err := ask(label(participant{"0208", "0403170701"}) + "." + schemeParticipant + "." + zoneLive)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(question)
	f.Add([]byte{})
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, answer []byte) {
		records, truncated, err := readAnswer(answer, question, id)
		if err == nil && !truncated && len(records) == 0 {
			t.Error("nothing was found, and nobody says so")
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`<SignedServiceMetadata xmlns="` + spaceMetadata + `"><ServiceMetadata/><Signature xmlns="` + spaceSignature + `"><SignedInfo><Reference URI=""/></SignedInfo></Signature></SignedServiceMetadata>`))
	r, err := newRegistry(true, "", "", nil)
	if err != nil {
		f.Fatal(err)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := verifySigned(body, r.trusted, time.Now()); err == nil {
			t.Error("what nobody signed is believed")
		}
	})
}

func TestNameServersOfTheSystem(t *testing.T) {
	list, err := serversOf("# x\nsearch a\nnameserver 10.0.0.1\nnameserver fe80::1%eth0\nnameserver 1.1.1.1\nnameserver 9.9.9.9\n")
	if err != nil || strings.Join(list, " ") != "10.0.0.1:53 [fe80::1%eth0]:53 1.1.1.1:53" {
		t.Errorf("%v %v", list, err)
	}
	if _, err := serversOf("search a\n"); err == nil {
		t.Error("no server is a server")
	}
}
