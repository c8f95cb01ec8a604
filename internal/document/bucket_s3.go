package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"tributary/internal/fault"
)

// s3 is a bucket of an S3-compatible store.
type s3 struct {
	client    minio.Core
	name      string
	transport *http.Transport
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
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = writersRemote
	options := &minio.Options{Creds: credentialChain(), Secure: at.Scheme == "https" && !insecure, Region: region, Transport: transport, MaxRetries: 3, BucketLookup: minio.BucketLookupAuto}
	if pathStyle {
		options.BucketLookup = minio.BucketLookupPath
	}
	client, err := minio.New(at.Host, options)
	if err != nil {
		return nil, fmt.Errorf("open the document store: %w", err)
	}
	return &s3{client: minio.Core{Client: client}, name: u.Host, transport: transport}, nil
}

func credentialChain() *credentials.Credentials {
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}})
}

// put overwrites: the same bytes again do no harm, a put is atomic there, and
// not every compatible store knows conditions. The hash of the bytes is signed,
// so that the store refuses what was changed on the way; DisableContentSha256
// switches off the other way, a signature of every chunk.
func (s *s3) put(ctx context.Context, key string, f File) error {
	_, err := s.client.PutObject(ctx, s.name, key, bytes.NewReader(f.Bytes), f.Size, "", f.SHA256, minio.PutObjectOptions{ContentType: "application/octet-stream", DisableContentSha256: true})
	return s.say("write", key, err)
}

func (s *s3) get(ctx context.Context, key string, size int64) ([]byte, error) {
	body, _, _, err := s.client.GetObject(ctx, s.name, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, s.say("read", key, err)
	}
	data, err := readUpTo(body, size)
	return data, s.say("read", key, errors.Join(err, body.Close()))
}

func (s *s3) part(ctx context.Context, key string, at, size int64) ([]byte, error) {
	var options minio.GetObjectOptions
	if err := options.SetRange(at, at+size-1); err != nil {
		return nil, s.say("read", key, err)
	}
	body, _, _, err := s.client.GetObject(ctx, s.name, key, options)
	if err != nil {
		return nil, s.say("read", key, err)
	}
	data, err := readUpTo(body, size)
	return data, s.say("read", key, errors.Join(err, body.Close()))
}

// erase stores the object anew: parts of one cannot be changed. Packs come here
// only with a folder that was copied into the store.
func (s *s3) erase(ctx context.Context, key string, size int64, parts []member) error {
	data, err := s.get(ctx, key, size)
	if err != nil {
		return err
	}
	return s.put(ctx, key, NewFile(without(data, parts)))
}

func (s *s3) remove(ctx context.Context, key string) error {
	return s.say("remove", key, s.client.RemoveObject(ctx, s.name, key, minio.RemoveObjectOptions{}))
}

func (s *s3) each(ctx context.Context, prefix string, do func([]string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // whoever stops early leaves no lister behind
	var page []string
	for object := range s.client.Client.ListObjects(ctx, s.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true, MaxKeys: listMax}) {
		if object.Err != nil {
			return s.say("list", prefix, object.Err)
		}
		if page = append(page, object.Key); len(page) == listMax {
			if err := do(page); err != nil {
				return err
			}
			page = nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return do(page)
}

func (s *s3) close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// say gives an error of the store its place, and what is not there its kind.
func (s *s3) say(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	if code := minio.ToErrorResponse(err).Code; code == minio.NoSuchKey {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return fmt.Errorf("%s %s: %w", verb, key, err)
}
