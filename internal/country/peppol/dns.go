package peppol

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	typeNAPTR   = dnsmessage.Type(35) // RFC 3403
	dnsTimeout  = 3 * time.Second     // of one question to one server
	dnsTries    = 2                   // questions to each server
	dnsBytesMax = 1232                // of an answer over UDP; a longer one comes over TCP
	recordsMax  = 64                  // of one answer that are looked at
	serversMax  = 3                   // as resolvers have it
)

// errNoName says that the registry has no such name: a firm answer.
var errNoName = errors.New("there is no such name")

// naptr is a naming authority pointer (RFC 3403, section 4).
type naptr struct {
	Order, Preference       uint16
	Flags, Services, Regexp string // with flag U nothing is replaced by a name
}

// resolver asks name servers, which Go's own does not do for such records.
type resolver struct {
	servers func() ([]string, error) // host:port each
}

// systemServers are the name servers of the machine.
func systemServers() ([]string, error) {
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil, fmt.Errorf("finding a name server: %w", err)
	}
	return serversOf(string(text))
}

func serversOf(text string) (list []string, err error) {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) >= 2 && words[0] == "nameserver" && len(list) < serversMax {
			list = append(list, net.JoinHostPort(words[1], "53"))
		}
	}
	if len(list) == 0 {
		return nil, errors.New("finding a name server: /etc/resolv.conf names none")
	}
	return list, nil
}

// lookupNAPTR answers the records of a name, in the order in which they are to
// be tried. errNoName: the name does not exist, or has none.
//
// Failure policy: only a server that says so makes a name not exist. A time-out,
// a refusal or a broken answer is trouble of the servers, and the next one is asked.
func (r resolver) lookupNAPTR(ctx context.Context, name string) ([]naptr, error) {
	servers, err := r.servers()
	if err != nil {
		return nil, err
	}
	question, id, err := ask(name)
	if err != nil {
		return nil, err
	}
	var failed error
	for try := range dnsTries * len(servers) {
		server := servers[try%len(servers)]
		records, err := exchange(ctx, server, question, id)
		if err == nil || errors.Is(err, errNoName) {
			return records, err
		}
		failed = fmt.Errorf("asking the name server %s: %w", server, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// ask writes the question.
func ask(name string) (question []byte, id uint16, err error) {
	full, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return nil, 0, fmt.Errorf("naming %q: %w", name, err)
	}
	id = uint16(rand.Uint32())
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: id, RecursionDesired: true})
	steps := []func() error{
		b.StartQuestions,
		func() error {
			return b.Question(dnsmessage.Question{Name: full, Type: typeNAPTR, Class: dnsmessage.ClassINET})
		},
		b.StartAdditionals,
		func() error {
			var h dnsmessage.ResourceHeader
			if err := h.SetEDNS0(dnsBytesMax, dnsmessage.RCodeSuccess, false); err != nil {
				return err
			}
			return b.OPTResource(h, dnsmessage.OPTResource{})
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, 0, fmt.Errorf("asking for %q: %w", name, err)
		}
	}
	question, err = b.Finish()
	return question, id, err
}

// exchange asks one server, over TCP where the answer is too long for UDP.
func exchange(ctx context.Context, server string, question []byte, id uint16) ([]naptr, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	for _, network := range []string{"udp", "tcp"} {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, server)
		if err != nil {
			return nil, err
		}
		deadline, _ := ctx.Deadline()
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		_ = conn.SetDeadline(deadline) // a connection without one would fail at its first use
		var answer []byte
		if network == "udp" {
			answer, err = overUDP(conn, question, id)
		} else {
			answer, err = overTCP(conn, question)
		}
		stop()
		conn.Close()
		if err != nil {
			return nil, err
		}
		records, truncated, err := readAnswer(answer, question, id)
		if !truncated {
			return records, err
		}
	}
	return nil, errors.New("the answer is cut off")
}

// overUDP passes over whatever is no answer to the question: anybody may send to a port.
func overUDP(conn net.Conn, question []byte, id uint16) ([]byte, error) {
	if _, err := conn.Write(question); err != nil {
		return nil, err
	}
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return nil, err
		}
		if n >= 12 && binary.BigEndian.Uint16(buffer) == id && buffer[2]&0x80 != 0 {
			return buffer[:n], nil
		}
	}
}

func overTCP(conn net.Conn, question []byte) ([]byte, error) {
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(question))), question...)); err != nil {
		return nil, err
	}
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(conn, answer)
	return answer, err
}

// readAnswer takes the records out of an answer to the question.
func readAnswer(answer, question []byte, id uint16) (records []naptr, truncated bool, err error) {
	var p, asked dnsmessage.Parser
	header, err := p.Start(answer)
	if err != nil {
		return nil, false, fmt.Errorf("reading the answer: %w", err)
	}
	if _, err := asked.Start(question); err != nil {
		return nil, false, err
	}
	own, err := asked.Question()
	if err != nil {
		return nil, false, err
	}
	theirs, err := p.Question()
	if err != nil || header.ID != id || !header.Response || theirs.Type != own.Type ||
		!strings.EqualFold(theirs.Name.String(), own.Name.String()) {
		return nil, false, errors.New("the answer is to another question")
	}
	switch {
	case header.Truncated:
		return nil, true, nil
	case header.RCode == dnsmessage.RCodeNameError:
		return nil, false, errNoName
	case header.RCode != dnsmessage.RCodeSuccess:
		return nil, false, fmt.Errorf("the server answers %s", header.RCode)
	}
	if err := p.SkipAllQuestions(); err != nil {
		return nil, false, fmt.Errorf("reading the answer: %w", err)
	}
	for range recordsMax {
		h, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			break
		}
		if err != nil {
			return nil, false, fmt.Errorf("reading the answer: %w", err)
		}
		body, err := p.UnknownResource()
		if err != nil {
			return nil, false, fmt.Errorf("reading the answer: %w", err)
		}
		if h.Type == typeNAPTR {
			record, err := readNAPTR(body.Data)
			if err != nil {
				return nil, false, err
			}
			records = append(records, record)
		}
	}
	if len(records) == 0 {
		return nil, false, errNoName
	}
	slices.SortStableFunc(records, func(a, b naptr) int {
		return (int(a.Order)<<16 + int(a.Preference)) - (int(b.Order)<<16 + int(b.Preference))
	})
	return records, false, nil
}

func readNAPTR(data []byte) (n naptr, err error) {
	short := errors.New("reading the answer: a record is cut off")
	if len(data) < 4 {
		return n, short
	}
	n.Order, n.Preference = binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:])
	data = data[4:]
	for _, field := range []*string{&n.Flags, &n.Services, &n.Regexp} {
		if len(data) == 0 || len(data) < 1+int(data[0]) {
			return n, short
		}
		*field = string(data[1 : 1+int(data[0])])
		data = data[1+int(data[0]):]
	}
	return n, nil
}

// uri is the address that a record of a register leads to; "" where it is another's.
// The whole name is replaced: other expressions are not in use.
func (n naptr) uri() string {
	if !strings.EqualFold(n.Flags, "U") || !strings.EqualFold(n.Services, "Meta:SMP") || len(n.Regexp) < 3 {
		return ""
	}
	parts := strings.Split(n.Regexp, n.Regexp[:1])
	if len(parts) != 4 || parts[1] != ".*" && parts[1] != "^.*$" {
		return ""
	}
	return parts[2]
}
