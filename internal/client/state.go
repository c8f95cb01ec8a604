package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"tributary/internal/fault"
)

// stateVersion is the form of the state file.
const stateVersion = 1

// stateHead is the first line: what the file was made for. Operation ids of one
// service mean nothing to another.
type stateHead struct {
	Version   int    `json:"tributary_submit"`
	URL       string `json:"url"`
	Operation string `json:"operation"`
}

// stateRecord is every further line: an entry was accepted, or its result is known.
type stateRecord struct {
	ID          string  `json:"transaction_id"`
	Digest      string  `json:"digest"`
	OperationID string  `json:"operation_id"`
	Result      *result `json:"result,omitempty"`
}

// stateFile remembers what was accepted: an append-only log of JSON lines, one
// writer, synced before anybody is told.
//
// Failure policy: records that wait at the same time share one sync. A line that
// a crash cut short is dropped at the next start: its entry counts as not
// submitted and is submitted again. A broken line in the middle stops the run,
// because what else the file says could not be believed.
type stateFile struct {
	file    *os.File
	known   map[string]stateRecord // what earlier runs wrote, by transaction_id
	records chan stateWrite
	ended   chan struct{}
}

type stateWrite struct {
	line []byte
	done chan error
}

// stateGroupMax bounds the records of one sync.
const stateGroupMax = 256

func openState(path string, head stateHead) (*stateFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	s := &stateFile{file: file, known: map[string]stateRecord{}, records: make(chan stateWrite, stateGroupMax),
		ended: make(chan struct{})}
	if err := s.load(path, head); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	go s.write()
	return s, nil
}

func (s *stateFile) load(path string, head stateHead) error {
	// Two runs on one file would each submit what the other already has.
	if err := syscall.Flock(int(s.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("--state %s: in use by another run: %w", path, err)
	}
	text, err := io.ReadAll(s.file)
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if err := s.parse(path, text[:whole], head); err != nil {
		return err
	}
	if err := s.file.Truncate(int64(whole)); err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	if _, err := s.file.Seek(int64(whole), io.SeekStart); err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	if whole > 0 {
		return nil
	}
	line, _ := json.Marshal(head) // plain data always encodes
	if _, err := s.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return s.file.Sync()
}

func (s *stateFile) parse(path string, text []byte, head stateHead) error {
	if len(text) == 0 {
		return nil
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	var made stateHead
	if err := json.Unmarshal(lines[0], &made); err != nil || made.Version == 0 {
		return fault.New(fault.Invalid, "--state %s is not a state file of tributary submit: use another file", path)
	}
	if made.Version > stateVersion {
		return fault.New(fault.Invalid, "--state %s was written by a newer version", path)
	}
	if made.URL != head.URL || made.Operation != head.Operation {
		return fault.New(fault.Invalid, "--state %s belongs to --operation %s at %s, not to %s at %s: use another file",
			path, made.Operation, made.URL, head.Operation, head.URL)
	}
	for i, line := range lines[1:] {
		var r stateRecord
		if err := json.Unmarshal(line, &r); err != nil || r.ID == "" || r.OperationID == "" {
			return fault.New(fault.Invalid,
				"--state %s: line %d is not readable; remove the file to submit everything again (nothing is filed twice)", path, i+2)
		}
		s.known[r.ID] = r
	}
	return nil
}

// write moves records to disk, as many as wait with one sync.
func (s *stateFile) write() {
	defer close(s.ended)
	var broken error
	for first := range s.records {
		group := []stateWrite{first}
		for len(group) < stateGroupMax {
			select {
			case next, ok := <-s.records:
				if ok {
					group = append(group, next)
					continue
				}
			default:
			}
			break
		}
		if broken == nil {
			broken = s.store(group)
		}
		for _, w := range group {
			w.done <- broken
		}
	}
}

func (s *stateFile) store(group []stateWrite) error {
	var text bytes.Buffer
	for _, w := range group {
		text.Write(w.line)
	}
	if _, err := s.file.Write(text.Bytes()); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync the state file: %w", err)
	}
	return nil
}

// add stores a record; nil means on disk.
func (s *stateFile) add(r stateRecord) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	w := stateWrite{append(line, '\n'), make(chan error, 1)}
	s.records <- w
	return <-w.done
}

// Close ends the writer; nobody may call add any more.
func (s *stateFile) Close() error {
	close(s.records)
	<-s.ended
	return s.file.Close()
}
