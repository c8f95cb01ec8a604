package files

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tributary/internal/fault"
)

// s3 is a bucket of an S3-compatible store.
type s3 struct {
	*s3Client
}

// amazon is where buckets are unless an address says otherwise; the client finds
// the region's own host from it.
const amazon = "https://s3.amazonaws.com"

// openS3 reads s3://BUCKET?region=…&endpoint=…&use_path_style=true. Credentials
// are looked for where Amazon's own tools do: in the environment, in their file,
// and at the machine, container or service account.
func openS3(u *url.URL) (*s3, error) {
	q := u.Query()
	take := func(names ...string) (value string) {
		for _, name := range names {
			if q.Has(name) {
				value = q.Get(name)
				q.Del(name)
			}
		}
		return value
	}
	region, address := take("region"), take("endpoint")
	pathStyle := take("use_path_style", "s3ForcePathStyle") == "true"
	insecure := take("disable_https", "disableSSL") == "true"
	take("request_checksum_calculation", "response_checksum_validation", "awssdk") // of the version before: bodies are always signed with their hash
	if left := slices.Sorted(maps.Keys(q)); len(left) > 0 {
		return nil, fault.New(fault.Invalid, "document store: an s3 address has no %q: want region, endpoint, use_path_style, disable_https", left[0])
	}
	if u.Host == "" || u.Path != "" && u.Path != "/" {
		return nil, fault.New(fault.Invalid, "document store: want s3://BUCKET?region=REGION")
	}
	if address == "" {
		address = amazon
	}
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || strings.Trim(at.Path, "/") != "" {
		return nil, fault.New(fault.Invalid, "document store: endpoint %q is not an address like https://HOST", address)
	}
	if insecure {
		at.Scheme = "http"
	}
	return &s3{s3Client: newS3Client(u.Host, at, region, pathStyle)}, nil
}

// put overwrites: the same bytes again do no harm, a put is atomic there, and
// not every compatible store knows conditions. The hash of the bytes is signed,
// so that the store refuses what was changed on the way. Buckets with object
// lock want a checksum besides, and MD5 is the one that every store knows.
func (s *s3) put(ctx context.Context, key string, f File) error {
	sum := md5.Sum(f.Bytes)
	response, err := s.do(ctx, s3Call{method: http.MethodPut, key: key, body: f.Bytes, sha256: f.SHA256,
		headers: map[string]string{"Content-Type": "application/octet-stream", "Content-MD5": base64.StdEncoding.EncodeToString(sum[:])}})
	if err != nil {
		return s.say("write", key, err)
	}
	return s.say("write", key, response.Body.Close())
}

func (s *s3) get(ctx context.Context, key string, size int64) ([]byte, error) {
	return s.read(ctx, s3Call{method: http.MethodGet, key: key}, size)
}

func (s *s3) part(ctx context.Context, key string, at, size int64) ([]byte, error) {
	return s.read(ctx, s3Call{method: http.MethodGet, key: key, headers: map[string]string{"Range": fmt.Sprintf("bytes=%d-%d", at, at+size-1)}}, size)
}

func (s *s3) read(ctx context.Context, call s3Call, size int64) ([]byte, error) {
	response, err := s.do(ctx, call)
	if err != nil {
		return nil, s.say("read", call.key, err)
	}
	data, err := readUpTo(response.Body, size)
	return data, s.say("read", call.key, errors.Join(err, response.Body.Close()))
}

// erase stores the object anew: parts of one cannot be changed. Archives come here
// only with a folder that was copied into the store.
func (s *s3) erase(ctx context.Context, key string, size int64, parts []member) error {
	data, err := s.get(ctx, key, size)
	if err != nil {
		return err
	}
	return s.put(ctx, key, NewFile(without(data, parts)))
}

func (s *s3) remove(ctx context.Context, key string) error {
	response, err := s.do(ctx, s3Call{method: http.MethodDelete, key: key})
	if err != nil {
		return s.say("remove", key, err)
	}
	return s.say("remove", key, response.Body.Close())
}

func (s *s3) each(ctx context.Context, prefix string, do func([]string) error) error {
	for next := ""; ; {
		page, err := s.list(ctx, prefix, next)
		if err != nil {
			return s.say("list", prefix, err)
		}
		keys := make([]string, len(page.Contents))
		for i, object := range page.Contents {
			keys[i] = object.Key
		}
		if err := do(keys); err != nil {
			return err
		}
		if !page.IsTruncated {
			return nil
		}
		if next = page.NextContinuationToken; next == "" {
			return s.say("list", prefix, errors.New("the store has more and does not say where"))
		}
	}
}

// say gives an error of the store its place, and what is not there its kind.
func (s *s3) say(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	var refused *s3Refusal
	if errors.As(err, &refused) && refused.Code == "NoSuchKey" {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return fmt.Errorf("%s %s: %w", verb, key, err)
}
