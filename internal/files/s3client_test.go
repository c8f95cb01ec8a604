package files_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/files"
)

// signedS3 says whether a call is signed as "AWS Signature Version 4" wants it
// (Amazon S3 API reference, "Authenticating requests: Authorization header"),
// from what came over the wire and the secret alone.
func signedS3(r *http.Request, secret string) bool {
	_, fields, _ := strings.Cut(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	got := map[string]string{}
	for field := range strings.SplitSeq(fields, ", ") {
		name, value, _ := strings.Cut(field, "=")
		got[name] = value
	}
	scope := strings.SplitN(got["Credential"], "/", 2)
	if len(scope) != 2 {
		return false
	}
	var headers strings.Builder
	for name := range strings.SplitSeq(got["SignedHeaders"], ";") {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		headers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	canonical := strings.Join([]string{r.Method, r.URL.EscapedPath(),
		strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20"),
		headers.String(), got["SignedHeaders"], r.Header.Get("X-Amz-Content-Sha256")}, "\n")
	sum := sha256.Sum256([]byte(canonical))
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(scope[1], "/") {
		key = hmacOf(key, part)
	}
	text := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + scope[1] + "\n" + hex.EncodeToString(sum[:])
	return hex.EncodeToString(hmacOf(key, text)) == got["Signature"]
}

func hmacOf(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// outsideStore answers an S3 whose every call the test judges; what the judge
// does not answer is kept.
func outsideStore(t *testing.T, bucket, region string,
	judge func(w http.ResponseWriter, r *http.Request, body []byte) bool) *files.Outside {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		if err != nil || judge(w, r, body) {
			return
		}
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(server.Close)
	o, err := files.OpenOutside("s3://" + bucket + "?use_path_style=true" + region + "&endpoint=" +
		url.QueryEscape(server.URL))
	must(t, err)
	t.Cleanup(func() { must(t, o.Close()) })
	return o
}

func TestEveryCallToS3IsSignedAndCarriesItsChecksums(t *testing.T) {
	t.Setenv("AWS_SESSION_TOKEN", "for an hour")
	var calls []string
	text := []byte("bytes that somebody could change on the way")
	o := outsideStore(t, "docs/2026 – a+b", "&region=eu-south-2",
		func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			calls = append(calls, r.Method)
			if !signedS3(r, "s3cret") || !strings.Contains(r.Header.Get("Authorization"), "/eu-south-2/s3/aws4_request") {
				t.Errorf("%s %s: the signature does not hold: %v", r.Method, r.URL, r.Header)
			}
			if r.Header.Get("X-Amz-Security-Token") != "for an hour" {
				t.Errorf("%s: the token of the session is missing", r.Method)
			}
			sum, old := sha256.Sum256(body), md5.Sum(body)
			if r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]) {
				t.Errorf("%s: the hash that is signed is not that of the body", r.Method)
			}
			if r.Method == http.MethodPut && (!bytes.Equal(body, text) ||
				r.Header.Get("Content-MD5") != base64.StdEncoding.EncodeToString(old[:])) {
				t.Errorf("a bucket with object lock refuses a put without its MD5: %v", r.Header)
			}
			if r.Method == http.MethodGet && r.URL.Query().Has("list-type") {
				_, _ = io.WriteString(w,
					"<ListBucketResult><Contents><Key>"+r.URL.Query().Get("prefix")+"1</Key></Contents></ListBucketResult>")
			}
			return true
		})
	must(t, o.Put(t.Context(), "heads-1", text))
	if _, err := o.Last(t.Context(), "heads-", 100); err != nil {
		t.Error(err)
	}
	if strings.Join(calls, " ") != "PUT GET GET" {
		t.Error(calls)
	}
}

func TestS3IsTriedAgainWhereThatHelps(t *testing.T) {
	for status, want := range map[int]int{http.StatusServiceUnavailable: 3, http.StatusTooManyRequests: 3,
		http.StatusForbidden: 1, http.StatusMovedPermanently: 1} {
		calls := 0
		o := outsideStore(t, "docs", "&region=eu-west-1", func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			calls++
			w.Header().Set("X-Amz-Bucket-Region", "ap-east-1") // the operator has named another: theirs counts
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<Error><Code>No</Code><Message>"+strings.Repeat("x", 9000)+"</Message></Error>")
			return true
		})
		err := o.Put(t.Context(), "a", nil)
		if err == nil || calls != want || len(err.Error()) > 500 {
			t.Errorf("%d: %d calls, %v", status, calls, err)
		}
	}
	calls := 0
	o := outsideStore(t, "docs", "&region=eu-west-1", func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		if calls++; calls < 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
		return true
	})
	if err := o.Put(t.Context(), "a", nil); err != nil || calls != 3 {
		t.Errorf("%d calls: %v", calls, err)
	}
}

func TestS3TellsTheRegionWhereNobodyNamedIt(t *testing.T) {
	var asked []string
	o := outsideStore(t, "docs", "", func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		region := strings.Split(r.Header.Get("Authorization"), "/")[2]
		asked = append(asked, region)
		if region == "eu-central-1" {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-central-1</Region></Error>")
		return true
	})
	must(t, o.Put(t.Context(), "a", nil))
	must(t, o.Put(t.Context(), "b", nil))
	if strings.Join(asked, " ") != "us-east-1 eu-central-1 eu-central-1" {
		t.Error(asked)
	}
}

func TestBucketsOfAmazonHaveHostsOfTheirOwn(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	for address, want := range map[string]string{
		"s3://docs?region=eu-west-1":                                    "https://docs.s3.eu-west-1.amazonaws.com/a%20b/c",
		"s3://docs?region=cn-north-1":                                   "https://docs.s3.cn-north-1.amazonaws.com.cn/a%20b/c",
		"s3://docs":                                                     "https://docs.s3.us-east-1.amazonaws.com/a%20b/c",
		"s3://do.cs?region=eu-west-1":                                   "https://s3.eu-west-1.amazonaws.com/do.cs/a%20b/c",
		"s3://docs?endpoint=s3.eu-north-1.amazonaws.com":                "https://docs.s3.eu-north-1.amazonaws.com/a%20b/c",
		"s3://docs?endpoint=https://store.example:9000":                 "https://store.example:9000/docs/a%20b/c",
		"s3://docs?endpoint=store.example&disable_https=true":           "http://store.example/docs/a%20b/c",
		"s3://docs?endpoint=storage.googleapis.com":                     "https://docs.storage.googleapis.com/a%20b/c",
		"s3://docs?endpoint=storage.googleapis.com&use_path_style=true": "https://storage.googleapis.com/docs/a%20b/c",
	} {
		if got := files.S3Address(t, address, "a b/c"); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// A list without an end must not fill the memory.
func TestAListThatNeverEndsIsCutOff(t *testing.T) {
	o := outsideStore(t, "docs", "&region=eu-west-1", func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		_, _ = io.WriteString(w, "<ListBucketResult>")
		for err := error(nil); err == nil; {
			_, err = io.WriteString(w, strings.Repeat("<Contents><Key>heads-1</Key></Contents>", 1000))
		}
		return true
	})
	if _, err := o.Last(t.Context(), "heads-", 100); err == nil {
		t.Error("all of it was read")
	}
}
