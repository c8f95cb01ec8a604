package account

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/turnstile"
)

// Limits of a logo. A few bytes can claim any number of pixels, so the size is
// looked at before the picture is decoded.
const (
	LogoBytesMax  = 512 << 10
	LogoSideMax   = 4096    // pixels
	LogoPixelsMax = 4 << 20 // width times height

	logosKept = 16 // per generation: at most 16 MiB of memory

	// A pixel of a 16-bit picture with transparency takes eight bytes, of a
	// progressive JPEG twelve with its coefficients, and interlacing adds a pass.
	pixelBytes   = 16
	decodedBytes = 64 << 20 // of all pictures that are decoded at the same time

	picturesWaiting = 8 // of one client
)

// decoding bounds the memory of pictures: a file of a few kilobytes can stand for
// 64 MiB, and forty at a time were 1.4 GB. It is the process that has the memory.
var decoding = turnstile.New(decodedBytes, picturesWaiting)

// Logo describes a client's logo; [Accounts.Logo] has its bytes.
type Logo struct {
	MediaType string `json:"media_type"` // image/png or image/jpeg
	SHA256    string `json:"sha256"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Bytes     int    `json:"bytes"`
}

// ReadLogo describes a picture, or says why it cannot be a logo. It decodes the
// whole picture once, so that no document fails on it later; owners take turns.
func ReadLogo(ctx context.Context, owner string, raw []byte) (logo *Logo, err error) {
	err = WithLogo(ctx, owner, raw, func(_ image.Image, l *Logo) { logo = l })
	return logo, err
}

// WithLogo is ReadLogo with the picture itself, which is to be forgotten when fn returns.
func WithLogo(ctx context.Context, owner string, raw []byte, fn func(image.Image, *Logo)) error {
	if len(raw) > LogoBytesMax {
		return badLogo("has %d bytes, at most %d are allowed", len(raw), LogoBytesMax)
	}
	media, decode, size, err := logoHead(raw)
	if err != nil {
		return err
	}
	leave, err := decoding.Enter(ctx, owner, int64(size.Width)*int64(size.Height)*pixelBytes)
	if err != nil {
		return fmt.Errorf("wait to decode a picture: %w", err)
	}
	defer leave()
	picture, err := decode(bytes.NewReader(raw))
	if err != nil {
		return badLogo("cannot be read: %v", err)
	}
	sum := sha256.Sum256(raw)
	fn(picture, &Logo{MediaType: media, SHA256: hex.EncodeToString(sum[:]), Width: size.Width, Height: size.Height,
		Bytes: len(raw)})
	return nil
}

// logoHead reads what a picture claims to be.
func logoHead(raw []byte) (media string, decode func(io.Reader) (image.Image, error), size image.Config, err error) {
	var head func(io.Reader) (image.Config, error)
	switch {
	case bytes.HasPrefix(raw, []byte("\x89PNG\r\n\x1a\n")):
		media, head, decode = "image/png", png.DecodeConfig, png.Decode
	case bytes.HasPrefix(raw, []byte("\xFF\xD8\xFF")):
		media, head, decode = "image/jpeg", jpeg.DecodeConfig, jpeg.Decode
	default:
		return "", nil, size, badLogo("is not a PNG or JPEG image")
	}
	if size, err = head(bytes.NewReader(raw)); err != nil {
		return "", nil, size, badLogo("cannot be read: %v", err)
	}
	if size.Width < 1 || size.Height < 1 || size.Width > LogoSideMax || size.Height > LogoSideMax ||
		size.Width*size.Height > LogoPixelsMax {
		return "", nil, size, badLogo("has %d × %d pixels, at most %d on a side and %d in all are allowed", size.Width,
			size.Height, LogoSideMax, LogoPixelsMax)
	}
	return media, decode, size, nil
}
func badLogo(format string, args ...any) error {
	return invalid(fault.At("logo", fault.FieldNotValid, format, args...))
}

// SetLogo replaces a client's logo; empty bytes remove it.
func (a *Accounts) SetLogo(ctx context.Context, by audit.Actor, clientID string, raw []byte) (Client, error) {
	var logo *Logo
	if len(raw) > 0 {
		var err error
		if logo, err = ReadLogo(ctx, clientID, raw); err != nil {
			return Client{}, err
		}
	}
	err := a.change(ctx, by, clientID, func(e *edit) error {
		config, err := e.config()
		if err != nil {
			return err
		}
		config.Logo = logo
		if err := e.tx.Exec(setLogoSQL, logoColumn(raw), clientID); err != nil {
			return err
		}
		return e.configure(config)
	})
	if err != nil {
		return Client{}, fmt.Errorf("set the logo of client %s: %w", clientID, err)
	}
	return a.client(ctx, clientID)
}

// Logo returns the bytes of a client's logo, nil when it has none. The caller must not change them.
func (a *Accounts) Logo(ctx context.Context, clientID string) ([]byte, error) {
	p, err := a.Profile(ctx, clientID)
	if err != nil || p.Config.Logo == nil {
		return nil, err
	}
	a.mu.Lock()
	raw, kept := a.logos.get(p.Config.Logo.SHA256)
	a.mu.Unlock()
	if kept {
		return raw, nil
	}
	err = a.read(ctx, func(r db.Reader) error {
		return r.Row(logoSQL, clientID).Scan(&raw)
	})
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return nil, fmt.Errorf("read the logo of client %s: %w", clientID, err)
	}
	// By its own digest: between two looks the logo may have been replaced.
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) == p.Config.Logo.SHA256 {
		a.mu.Lock()
		a.logos.put(p.Config.Logo.SHA256, raw)
		a.mu.Unlock()
	}
	return raw, nil
}
