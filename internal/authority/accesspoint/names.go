package accesspoint

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"tributary/internal/authority"
)

const (
	zone      = "participant.sml.simulated.example"
	typeNAPTR = dnsmessage.Type(35)

	portsTried = 100
)

// nameServer is the registry of participants as a name server, on a free port of
// this machine, over UDP and TCP.
type nameServer struct {
	address string
	err     error
}

// serveNames opens the name server until the desk closes. answer says where a
// name leads; see [accessPoint.answer].
func serveNames(d *authority.Desk, answer func(label string) (string, verdict)) *nameServer {
	packets, streams, err := onePort()
	if err != nil {
		return &nameServer{err: err}
	}
	d.Go(func(ctx context.Context) {
		stop := context.AfterFunc(ctx, func() {
			packets.Close()
			streams.Close()
		})
		defer stop()
		buffer := make([]byte, 4096)
		for {
			n, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return // closed
			}
			if reply := reply(buffer[:n], answer); reply != nil {
				_, _ = packets.WriteTo(reply, from) // who does not hear it asks again
			}
		}
	})
	d.Go(func(context.Context) {
		for {
			conn, err := streams.Accept()
			if err != nil {
				return // closed
			}
			serveStream(conn, answer)
		}
	})
	return &nameServer{address: packets.LocalAddr().String()}
}

// onePort opens a port that is free for both protocols.
func onePort() (packets net.PacketConn, streams net.Listener, err error) {
	for range portsTried {
		if packets, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
			return nil, nil, err
		}
		if streams, err = net.Listen("tcp", packets.LocalAddr().String()); err == nil {
			return packets, streams, nil
		}
		packets.Close()
	}
	return nil, nil, err
}

func serveStream(conn net.Conn, answer func(string) (string, verdict)) {
	defer conn.Close()
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return
	}
	question := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, question); err != nil {
		return
	}
	if reply := reply(question, answer); reply != nil {
		_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)) // who left asks again
	}
}

// verdict is how a question is answered.
type verdict int

const (
	found verdict = iota
	unknown
	failing
	silent
)

// answer says where the register of the participant behind a label is. Labels are
// hashes, so only those that are not like others are known by name.
func (a *accessPoint) answer(label string) (string, verdict) {
	var who string
	a.desk.Read(func(b *authority.Book) { who, _ = b.Get("label/" + label) })
	address, h := a.address()+"/smp", a.habitsOf(who)
	if h.Elsewhere != "" {
		address = h.Elsewhere
	}
	switch {
	case h.Silent:
		return "", silent
	case h.Failing:
		return "", failing
	case h.Unregistered:
		return "", unknown
	}
	return address, found
}

// labelOf is the name of a participant in the zone.
func labelOf(participant string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(participant)))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// reply answers a question for NAPTR records of the zone; nil is silence.
func reply(question []byte, answer func(string) (string, verdict)) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(question)
	if err != nil || header.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	out := dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true,
		RecursionDesired: header.RecursionDesired, RecursionAvailable: true}
	label, rest, _ := strings.Cut(strings.ToLower(strings.TrimSuffix(q.Name.String(), ".")), ".")
	address, said := "", unknown
	if rest == schemeParticipant+"."+zone && len(label) == 52 && q.Type == typeNAPTR {
		address, said = answer(label)
	}
	switch said {
	case silent:
		return nil
	case unknown:
		out.RCode = dnsmessage.RCodeNameError
	case failing:
		out.RCode = dnsmessage.RCodeServerFailure
	case found:
	}
	text, err := write(out, q, address)
	if err != nil {
		return nil
	}
	return text
}

func write(header dnsmessage.Header, q dnsmessage.Question, address string) ([]byte, error) {
	b := dnsmessage.NewBuilder(nil, header)
	err := errors.Join(b.StartQuestions(), b.Question(q), b.StartAnswers())
	if err == nil && header.RCode == dnsmessage.RCodeSuccess {
		// A record of another service stands before the one that counts.
		for i, record := range [][3]string{{"U", "Meta:Other", "!.*!https://other.example!"},
			{"U", "Meta:SMP", "!.*!" + address + "!"}} {
			data := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, 100), uint16(10+i))
			for _, field := range record {
				data = append(append(data, byte(len(field))), field...)
			}
			data = append(data, 0) // replaced by no name
			err = errors.Join(err, b.UnknownResource(dnsmessage.ResourceHeader{Name: q.Name, Type: typeNAPTR,
				Class: dnsmessage.ClassINET, TTL: 60},
				dnsmessage.UnknownResource{Type: typeNAPTR, Data: data}))
		}
	}
	if err != nil {
		return nil, err
	}
	return b.Finish()
}
