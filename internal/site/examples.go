package site

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// example is a call in one language.
type example struct {
	Language string // as people write it
	Grammar  string // for colours
	Code     string
}

// Placeholders where there is no demo to take values from.
const (
	keyPlaceholder      = "YOUR_API_KEY"
	supplierPlaceholder = "SUPPLIER_ID" // as the example bodies have it
	exampleCountry      = "XX"
)

// values are what examples and the try-it form call with.
func (b *book) values() map[string]string {
	v := map[string]string{"code": exampleCountry, "transaction_id": "order-1001"}
	if b.demo != nil {
		v["supplier_id"], v["id"] = "", b.demo.Suppliers[exampleCountry]
	}
	return v
}

// filled is an example's body with the demo's supplier.
func (b *book) filled(body string) string {
	if b.demo == nil {
		return body
	}
	return strings.ReplaceAll(body, supplierPlaceholder, b.demo.Suppliers[exampleCountry])
}

func indented(text json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return string(text)
	}
	return strings.TrimSpace(out.String())
}

// wire is what an example sends.
type wire struct {
	method, url, key, body string
	file                   string // where bytes that are no text are kept
}

// examples are the same call in four languages, with nothing but what each
// language brings along.
func (b *book) examples(api *description, op *operation, body string) []example {
	c := wire{method: op.method, url: b.address(api, op), body: body}
	if !op.Open() {
		c.key = keyPlaceholder
		if b.demo != nil {
			c.key = b.demo.Key
		}
	}
	for media := range op.Responses["200"].Content {
		if strings.HasPrefix(media, "application/pdf") {
			c.file = "document.pdf"
		}
	}
	return []example{{"curl", "sh", c.curl()}, {"Go", "go", c.golang()}, {"TypeScript", "typescript", c.typescript()},
		{"Python", "python", c.python()}}
}

// address is where an example calls: path parameters have the demo's values or
// their own names in capitals.
func (b *book) address(api *description, op *operation) string {
	at := op.path
	values := b.values()
	for _, p := range op.Parameters {
		if p.In == "path" {
			value := values[p.Name]
			if value == "" {
				value = strings.ToUpper(p.Name)
				if p.Name == "format" {
					value = "pdf"
				}
			}
			at = strings.ReplaceAll(at, "{"+p.Name+"}", value)
		}
	}
	base := "http://127.0.0.1:8080"
	if len(api.Servers) > 0 && api.Servers[0].URL != "" {
		base = api.Servers[0].URL
	}
	return base + at
}

func (c wire) curl() string {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	lines := []string{"curl -sS " + quote(c.url)}
	if c.method != "GET" && (c.method != "POST" || c.body == "") {
		lines[0] = "curl -sS -X " + c.method + " " + quote(c.url)
	}
	if c.key != "" {
		lines = append(lines, "-H "+quote("Authorization: Bearer "+c.key))
	}
	if c.file != "" {
		lines = append(lines, "-o "+c.file)
	}
	if c.body != "" {
		lines = append(lines, "-H "+quote("Content-Type: application/json"), "-d "+quote(c.body))
	}
	return strings.Join(lines, " \\\n  ")
}

func (c wire) golang() string {
	var b strings.Builder
	line := func(text string) { b.WriteString(text + "\n") }
	line("package main\n\nimport (\n\t\"fmt\"\n\t\"io\"\n\t\"log\"\n\t\"net/http\"")
	if c.file != "" {
		line("\t\"os\"")
	}
	body := "nil"
	if c.body != "" {
		line("\t\"strings\"")
		body = "strings.NewReader(body)"
	}
	line(")\n\nfunc main() {")
	if c.body != "" {
		text := "`" + c.body + "`"
		if strings.Contains(c.body, "`") {
			text = strconv.Quote(c.body)
		}
		line("\tbody := " + text)
	}
	line("\treq, err := http.NewRequest(" + strconv.Quote(c.method) + ", " + strconv.Quote(c.url) + ", " + body + ")")
	line("\tif err != nil {\n\t\tlog.Fatal(err)\n\t}")
	if c.key != "" {
		line("\treq.Header.Set(\"Authorization\", " + strconv.Quote("Bearer "+c.key) + ")")
	}
	if c.body != "" {
		line("\treq.Header.Set(\"Content-Type\", \"application/json\")")
	}
	line("\tresp, err := http.DefaultClient.Do(req)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tdefer resp.Body.Close()")
	line("\tanswer, err := io.ReadAll(resp.Body)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}")
	if c.file != "" {
		line("\tif err := os.WriteFile(\"" + c.file +
			"\", answer, 0o600); err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tfmt.Println(resp.StatusCode)\n}")
	} else {
		line("\tfmt.Println(resp.StatusCode, string(answer))\n}")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (c wire) typescript() string {
	var b strings.Builder
	line := func(text string) { b.WriteString(text + "\n") }
	if c.file != "" {
		line(`import { writeFile } from "node:fs/promises";` + "\n")
	}
	line(`const response = await fetch(` + strconv.Quote(c.url) + `, {`)
	line(`  method: ` + strconv.Quote(c.method) + `,`)
	var headers []string
	if c.key != "" {
		headers = append(headers, `Authorization: `+strconv.Quote("Bearer "+c.key))
	}
	if c.body != "" {
		headers = append(headers, `"Content-Type": "application/json"`)
	}
	if len(headers) > 0 {
		line(`  headers: { ` + strings.Join(headers, ", ") + ` },`)
	}
	if c.body != "" { // JSON is an expression of the language
		line(`  body: JSON.stringify(` + strings.ReplaceAll(c.body, "\n", "\n  ") + `),`)
	}
	line(`});`)
	if c.file != "" {
		line(`await writeFile("` + c.file + `", Buffer.from(await response.arrayBuffer()));` + "\n" +
			`console.log(response.status);`)
	} else {
		line(`console.log(response.status, await response.text());`)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (c wire) python() string {
	var b strings.Builder
	line := func(text string) { b.WriteString(text + "\n") }
	line("import urllib.request\n")
	if c.body != "" {
		line(`body = r"""` + c.body + `"""`)
	}
	line("request = urllib.request.Request(\n    " + strconv.Quote(c.url) + ",\n    method=" + strconv.Quote(c.method) + ",")
	var headers []string
	if c.key != "" {
		headers = append(headers, `"Authorization": `+strconv.Quote("Bearer "+c.key))
	}
	if c.body != "" {
		headers = append(headers, `"Content-Type": "application/json"`)
	}
	if len(headers) > 0 {
		line("    headers={" + strings.Join(headers, ", ") + "},")
	}
	if c.body != "" {
		line("    data=body.encode(),")
	}
	line(")\nwith urllib.request.urlopen(request) as response:")
	if c.file != "" {
		line("    with open(\"" + c.file + "\", \"wb\") as file:\n        file.write(response.read())\n    print(response.status)")
	} else {
		line("    print(response.status, response.read().decode())")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
