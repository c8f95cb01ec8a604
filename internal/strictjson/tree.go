package strictjson

// Kind is the type of a JSON value.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	Text
	Array
	Object
)

// Value is one value of a tree. The tree keeps what a decoder into structs
// loses: which members were sent, null among them, and in which order.
type Value struct {
	Kind    Kind
	Text    string // of a string; a number or a literal as it was written
	Names   []string
	Members map[string]*Value
	Entries []*Value
}

// Parse reads a body of at most bytesMax bytes, which must be one object. Its
// error is that of [Reader.Err].
func Parse(body []byte, bytesMax int) (*Value, error) {
	r := new(Reader)
	r.Open(body, bytesMax)
	root := &Value{Kind: Object, Members: map[string]*Value{}}
	r.Body(func(name string) { root.add(name, r.value()) })
	if err := r.Err(); err != nil {
		return nil, err
	}
	return root, nil
}

func (v *Value) add(name string, member *Value) {
	v.Names = append(v.Names, name)
	v.Members[name] = member
}

func (r *Reader) value() *Value {
	switch r.peek() {
	case '{':
		v := &Value{Kind: Object, Members: map[string]*Value{}}
		r.members(func(name string) { v.add(name, r.value()) })
		return v
	case '[':
		v := &Value{Kind: Array}
		r.entries(func(int) { v.Entries = append(v.Entries, r.value()) })
		return v
	case '"':
		text, _ := r.str()
		return &Value{Kind: Text, Text: text}
	case 't', 'f':
		return &Value{Kind: Bool, Text: r.skipped()}
	case 'n':
		return &Value{Kind: Null, Text: r.skipped()}
	default:
		return &Value{Kind: Number, Text: r.skipped()}
	}
}

// skipped passes over the value at hand and returns it as it was written.
func (r *Reader) skipped() string {
	start := r.pos
	r.Skip()
	return r.text[start:r.pos]
}
