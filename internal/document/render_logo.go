package document

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"

	scale "golang.org/x/image/draw"

	"tributary/internal/account"
)

// Within the limits of account the largest picture takes 32 MiB to decode,
// once: documents share what is kept of it.
const (
	logoCacheBytesMax = 16 << 20
	logoWidthMax      = 52 * millimetre // on paper
	logoHeightMax     = 18 * millimetre
	logoDotsPerInch   = 300
)

// picture is a logo as documents embed it: opaque, as many pixels as can be
// seen, and nothing left of the file it came from.
type picture struct {
	raw           []byte // the file it was made from
	width, height int
	filter        string // how data is encoded, as the image's dictionary says it
	data          blob
}

func (p *picture) Size() int { return len(p.raw) + len(p.data.data) + 64 }

// fit returns the size on paper: the whole box in one direction, true to the sides' ratio.
func (p *picture) fit() (width, height length) {
	width, height = logoWidthMax, logoWidthMax*length(p.height)/length(p.width)
	if height > logoHeightMax {
		width, height = logoHeightMax*length(p.width)/length(p.height), logoHeightMax
	}
	return width, height
}

// logo returns the picture of a file, nil when there is none or it is no image.
// Files are told apart by all of their bytes: the hash under which they are kept
// is only fast.
func (r *Renderer) logo(raw []byte) *picture {
	if len(raw) == 0 || len(raw) > account.LogoBytesMax {
		return nil
	}
	pic, err := r.logos.Get(maphash.Bytes(r.seed, raw), func() (*picture, error) { return r.readLogo(raw) })
	if err == nil && !bytes.Equal(pic.raw, raw) {
		pic, err = r.readLogo(raw)
	}
	if err != nil {
		return nil // Failure policy: see Render
	}
	return pic
}

func (r *Renderer) readLogo(raw []byte) (made *picture, err error) {
	// Documents wait for each other's logos without an end: each logo is an owner of its own.
	sum := sha256.Sum256(raw)
	if err := account.WithLogo(context.Background(), string(sum[:]), raw, func(img image.Image, _ *account.Logo) { made = r.picture(img) }); err != nil {
		return nil, fmt.Errorf("reading a logo: %w", err)
	}
	made.raw = bytes.Clone(raw)
	return made, nil
}

// picture flattens an image on white, because transparency is a risk in print
// and of no use on a white page, and scales it down to what paper shows.
func (r *Renderer) picture(img image.Image) *picture {
	from := img.Bounds()
	w, h := from.Dx(), from.Dy()
	dots := func(l length) int { return int(l * logoDotsPerInch / (72 * point)) }
	if maxW := dots(logoWidthMax); w > maxW {
		w, h = maxW, max(1, h*maxW/w)
	}
	if maxH := dots(logoHeightMax); h > maxH {
		w, h = max(1, w*maxH/h), maxH
	}
	flat := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(flat, flat.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	if w == from.Dx() && h == from.Dy() {
		draw.Draw(flat, flat.Bounds(), img, from.Min, draw.Over)
	} else {
		scale.CatmullRom.Scale(flat, flat.Bounds(), img, from, draw.Over, nil)
	}
	pic := &picture{width: w, height: h, data: r.deflate.best(predictRows(flat)),
		filter: fmt.Sprintf("/FlateDecode/DecodeParms<</Predictor 15/Colors 3/Columns %d>>", w)}
	if _, grainy := img.(*image.YCbCr); grainy { // a photograph deflates badly
		var again bytes.Buffer
		if err := jpeg.Encode(&again, flat, &jpeg.Options{Quality: 92}); err == nil && again.Len() < len(pic.data.data) {
			pic.filter, pic.data = "/DCTDecode", newBlob(again.Bytes())
		}
	}
	return pic
}

// predictRows writes red, green and blue of every pixel less those of the pixel
// above (PNG filter Up), which makes a logo's large areas vanish in deflation.
func predictRows(img *image.RGBA) []byte {
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	out := make([]byte, 0, h*(1+3*w))
	above := make([]byte, 3*w)
	for y := range h {
		out = append(out, 2)
		for x := range w {
			at := img.PixOffset(x, y)
			for i := range 3 {
				v := img.Pix[at+i]
				out = append(out, v-above[3*x+i])
				above[3*x+i] = v
			}
		}
	}
	return out
}
