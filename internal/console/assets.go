package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"tributary/internal/web"
)

//go:embed assets
var assetFiles embed.FS

//go:embed pages
var pageFiles embed.FS

// assets are the stylesheet, the script and the icon, by name. Their addresses
// carry a digest, so browsers keep them until they change.
type assets map[string]asset

type asset struct {
	content []byte
	digest  string
	media   string
}

func readAssets() (assets, error) {
	all := assets{"icon.svg": newAsset(web.Icon, "image/svg+xml")}
	entries, err := fs.ReadDir(assetFiles, "assets")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		content, err := assetFiles.ReadFile(path.Join("assets", e.Name()))
		if err != nil {
			return nil, err
		}
		if path.Ext(e.Name()) == ".css" {
			content = slices.Concat(web.Palette, content)
		}
		media, known := map[string]string{".css": "text/css; charset=utf-8",
			".js": "text/javascript; charset=utf-8"}[path.Ext(e.Name())]
		if !known {
			return nil, fmt.Errorf("read asset %s: its media type is not known", e.Name())
		}
		all[e.Name()] = newAsset(content, media)
	}
	return all, nil
}

func newAsset(content []byte, media string) asset {
	sum := sha256.Sum256(content)
	return asset{content: content, digest: hex.EncodeToString(sum[:8]), media: media}
}

// address is where a page finds an asset.
func (a assets) address(name string) (string, error) {
	f, ok := a[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %s", name)
	}
	return Root + "/assets/" + f.digest + "/" + name, nil
}

// serve answers an asset. An old digest is answered with what there is now,
// which a page from before an upgrade can do more with than with nothing.
func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	f, ok := a[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Cache-Control", "no-cache")
	if strings.EqualFold(r.PathValue("digest"), f.digest) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.Write(f.content)
}
