package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"
)

const (
	s3TriesMax       = 3
	s3FirstWait      = 200 * time.Millisecond
	s3AnswerBytesMax = 4 << 20 // a page of listMax keys has a quarter of it
	s3RefusalMax     = 16 << 10
	s3RegionDefault  = "us-east-1" // where nobody says otherwise, and what most other stores call theirs
)

// s3Client sends four calls to one bucket. Signatures and credentials are those
// of minio-go's own small packages; its client, which knows sixty calls, would
// weigh more than the fonts.
//
// Failure policy: a call that nobody answered, or that the store could not serve
// (408, 429, 5xx), is tried three times within a second; every call can be
// repeated. What is then still wrong goes to the caller, who has a ladder of its own.
type s3Client struct {
	http        *http.Client
	transport   *http.Transport
	credentials *credentials.Credentials
	endpoint    *url.URL
	bucket      string
	virtual     bool // the bucket is part of the host's name
	region      atomic.Pointer[string]
	regionGiven bool
}

type s3Call struct {
	method, key string
	query       url.Values
	headers     map[string]string
	body        []byte
	sha256      string // of the body, hex
}

// s3Refusal is the store's own error (Amazon S3 API reference, "Error responses").
type s3Refusal struct {
	Code, Message, Region string
	status                int
}

func (r *s3Refusal) Error() string {
	return fmt.Sprintf("the store answered %d %s: %s", r.status, r.Code, r.Message)
}

func newS3Client(bucket string, endpoint *url.URL, region string, pathStyle bool) *s3Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = writersRemote
	c := &s3Client{transport: transport, endpoint: endpoint, bucket: bucket, regionGiven: region != "",
		virtual:     !pathStyle && s3utils.IsVirtualHostSupported(*endpoint, bucket),
		credentials: credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}}),
		http:        &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if region == "" {
		region = s3utils.GetRegionFromURL(*endpoint)
	}
	if region == "" {
		region = s3RegionDefault
	}
	c.region.Store(&region)
	return c
}

func (c *s3Client) close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// at is the address of a key; "": of the bucket.
func (c *s3Client) at(key string) *url.URL {
	u := &url.URL{Scheme: c.endpoint.Scheme, Host: c.endpoint.Host}
	if c.endpoint.Host == strings.TrimPrefix(amazon, "https://") { // the region's own host: the common one redirects
		u.Host = "s3." + *c.region.Load() + ".amazonaws.com"
		if strings.HasPrefix(*c.region.Load(), "cn-") {
			u.Host += ".cn"
		}
	}
	if c.virtual {
		u.Host, u.Path = c.bucket+"."+u.Host, "/"+key
	} else {
		u.Path = "/" + c.bucket + "/" + key
	}
	u.RawPath = s3utils.EncodePath(u.Path) // as it is signed
	return u
}

// do sends a call until it is answered. The answer is a success, and its body
// the caller's to close.
func (c *s3Client) do(ctx context.Context, call s3Call) (*http.Response, error) {
	if call.sha256 == "" {
		sum := sha256.Sum256(call.body)
		call.sha256 = hex.EncodeToString(sum[:])
	}
	for try := 1; ; try++ {
		response, again, err := c.once(ctx, call)
		if err == nil || !again || try == s3TriesMax || ctx.Err() != nil {
			return response, err
		}
		wait := s3FirstWait << (try - 1)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait/2 + rand.N(wait/2)):
		}
	}
}

func (c *s3Client) once(ctx context.Context, call s3Call) (response *http.Response, again bool, err error) {
	request, err := c.sign(ctx, call)
	if err != nil {
		return nil, false, err
	}
	response, err = c.http.Do(request)
	if err != nil {
		return nil, true, err
	}
	if response.StatusCode/100 == 2 {
		return response, false, nil
	}
	refused := readRefusal(response)
	return nil, c.learn(refused) || refused.status == http.StatusRequestTimeout || refused.status == http.StatusTooManyRequests || refused.status >= 500, refused
}

func (c *s3Client) sign(ctx context.Context, call s3Call) (*http.Request, error) {
	who, err := c.credentials.GetWithContext(&credentials.CredContext{Client: c.http, Context: ctx})
	if err != nil {
		return nil, fmt.Errorf("find credentials of the store: %w", err)
	}
	u := c.at(call.key)
	u.RawQuery = strings.ReplaceAll(call.query.Encode(), "+", "%20") // as it is signed
	request, err := http.NewRequestWithContext(ctx, call.method, u.String(), bytes.NewReader(call.body))
	if err != nil {
		return nil, err
	}
	for name, value := range call.headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("X-Amz-Content-Sha256", call.sha256)
	return signer.SignV4(*request, who.AccessKeyID, who.SecretAccessKey, who.SessionToken, *c.region.Load()), nil
}

// learn takes the region that the store says a bucket is in, where the operator
// named none.
func (c *s3Client) learn(r *s3Refusal) bool {
	if c.regionGiven || r.Region == "" || r.Region == *c.region.Load() {
		return false
	}
	c.region.Store(&r.Region)
	return true
}

func readRefusal(response *http.Response) *s3Refusal {
	r := &s3Refusal{}
	text, _ := io.ReadAll(io.LimitReader(response.Body, s3RefusalMax)) // the status says enough
	_ = response.Body.Close()                                          // read
	_ = xml.Unmarshal(text, r)                                         // a proxy answers in HTML
	r.status, r.Message = response.StatusCode, r.Message[:min(len(r.Message), 300)]
	if region := response.Header.Get("X-Amz-Bucket-Region"); region != "" {
		r.Region = region
	}
	if r.Code == "" && r.status == http.StatusNotFound {
		r.Code = "NoSuchKey"
	}
	return r
}

// s3Page is an answer to ListObjectsV2.
type s3Page struct {
	IsTruncated           bool
	NextContinuationToken string
	Contents              []struct{ Key string }
}

func (c *s3Client) list(ctx context.Context, prefix, next string) (page s3Page, err error) {
	query := url.Values{"list-type": {"2"}, "prefix": {prefix}, "max-keys": {strconv.Itoa(listMax)}}
	if next != "" {
		query.Set("continuation-token", next)
	}
	response, err := c.do(ctx, s3Call{method: http.MethodGet, query: query})
	if err != nil {
		return page, err
	}
	defer func() { _ = response.Body.Close() }() // read
	err = xml.NewDecoder(io.LimitReader(response.Body, s3AnswerBytesMax)).Decode(&page)
	return page, err
}
