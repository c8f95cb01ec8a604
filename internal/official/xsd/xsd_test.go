package xsd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/needs"
	"tributary/internal/official/xsd"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/structure"
)

// everything uses each construct once: groups, derivations of both kinds, an
// included file without namespace, substitution, all, list, union, keys.
const everything = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="urn:t" targetNamespace="urn:t" elementFormDefault="qualified">
<xs:include schemaLocation="part.xsd"/>
<xs:element name="Root"><xs:complexType><xs:sequence>
	<xs:group ref="Head"/>
	<xs:element name="Item" type="Special" maxOccurs="unbounded"/>
	<xs:element ref="Thing" minOccurs="0"/>
	<xs:element name="Set" minOccurs="0"><xs:complexType><xs:all><xs:element name="X" type="xs:int"/><xs:element name="Y" type="xs:int" minOccurs="0"/></xs:all></xs:complexType></xs:element>
	<xs:element name="Narrow" type="Narrow" minOccurs="0"/>
	<xs:element name="Sizes" type="Sizes" minOccurs="0"/>
	<xs:element name="Price" type="Small" minOccurs="0"/>
	<xs:element name="Bare" minOccurs="0"/>
	<xs:element name="Plain" form="unqualified" type="xs:date" minOccurs="0"/>
	<xs:choice minOccurs="0" maxOccurs="2"><xs:element name="P"><xs:complexType/></xs:element><xs:element name="Q" type="Sized"/></xs:choice>
	<xs:any namespace="##local urn:z" processContents="skip" minOccurs="0"/>
</xs:sequence><xs:attributeGroup ref="Common"/></xs:complexType>
	<xs:key name="items"><xs:selector xpath="Item | t:Item" xmlns:t="urn:t"/><xs:field xpath="@no"/></xs:key>
	<xs:keyref name="refs" refer="items"><xs:selector xpath=".//t:Item" xmlns:t="urn:t"/><xs:field xpath="@after"/></xs:keyref>
</xs:element>
<xs:group name="Head"><xs:sequence><xs:element name="Id" type="Code"/><xs:element name="Day" type="xs:date" minOccurs="0"/></xs:sequence></xs:group>
<xs:attributeGroup name="Common"><xs:attribute name="lang" type="xs:language"/><xs:attribute name="no" type="xs:int" use="required"/></xs:attributeGroup>
<xs:complexType name="Plain"><xs:sequence><xs:element name="Name" type="xs:string"/></xs:sequence><xs:attribute name="no" type="xs:int"/><xs:attribute name="old" type="xs:string"/></xs:complexType>
<xs:complexType name="Special"><xs:complexContent><xs:extension base="Plain"><xs:sequence><xs:element name="More" type="xs:string" minOccurs="0"/></xs:sequence><xs:attribute name="after" type="xs:int"/></xs:extension></xs:complexContent></xs:complexType>
<xs:complexType name="Narrow"><xs:complexContent><xs:restriction base="Plain"><xs:sequence><xs:element name="Name" type="Code"/></xs:sequence><xs:attribute name="old" use="prohibited"/></xs:restriction></xs:complexContent></xs:complexType>
<xs:complexType name="Sized"><xs:simpleContent><xs:extension base="Code"><xs:attribute name="unit" type="xs:token" use="required"/></xs:extension></xs:simpleContent></xs:complexType>
<xs:complexType name="Small"><xs:simpleContent><xs:restriction base="Amount"><xs:maxInclusive value="10"/></xs:restriction></xs:simpleContent></xs:complexType>
<xs:complexType name="Amount"><xs:simpleContent><xs:extension base="xs:decimal"><xs:attribute name="currency" type="Code"/></xs:extension></xs:simpleContent></xs:complexType>
<xs:simpleType name="Sizes"><xs:restriction><xs:simpleType><xs:list itemType="Either"/></xs:simpleType><xs:maxLength value="2"/></xs:restriction></xs:simpleType>
<xs:simpleType name="Either"><xs:union memberTypes="xs:int Code"/></xs:simpleType>
<xs:element name="Thing" type="Plain" abstract="true"/>
<xs:element name="Tool" substitutionGroup="Thing" type="Special"/>
</xs:schema>`

const part = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:simpleType name="Code"><xs:restriction base="xs:token"><xs:pattern value="[A-Z]{2,3}"/></xs:restriction></xs:simpleType></xs:schema>`

func compiled(t *testing.T, text string) (*structure.Schema, string, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "main.xsd")
	for name, content := range map[string]string{"main.xsd": text, "part.xsd": part} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	form, err := xsd.Compile(xsd.Source{Files: []string{path}})
	if err != nil {
		return nil, path, err
	}
	s, err := structure.Parse(form)
	return s, path, err
}

func TestEveryConstructIsCarriedOver(t *testing.T) {
	needs.Tool(t, "xmllint", "libxml2-utils")
	s, path, err := compiled(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	const item = `<Item no="1"><Name>a</Name></Item>`
	documents := map[string]bool{ // content after Id → valid
		item: true, `<Day>2024-01-01</Day>` + item: true, `<Day>x</Day>` + item: false, ``: false,
		`<Item no="1"><Name>a</Name><More/></Item>`: true, `<Item no="1"><More/><Name>a</Name></Item>`: false,
		`<Item><Name>a</Name></Item>`:                         false,
		item + `<Item no="2" after="1"><Name>a</Name></Item>`: true,
		item + `<Item no="2" after="3"><Name>a</Name></Item>`: false, item + item: false,
		item + `<Tool><Name>a</Name></Tool>`: true, item + `<Thing><Name>a</Name></Thing>`: false,
		item + `<Set><Y>1</Y><X>2</X></Set>`: true, item + `<Set><Y>1</Y></Set>`: false,
		item + `<Set><X>1</X><X>1</X></Set>`:             false,
		item + `<Narrow no="1"><Name>AB</Name></Narrow>`: true, item + `<Narrow old="1"><Name>AB</Name></Narrow>`: false,
		item + `<Narrow><Name>ab</Name></Narrow>`: false,
		item + `<Sizes>12 AB</Sizes>`:             true, item + `<Sizes>12 AB 3</Sizes>`: false,
		item + `<Sizes>12 ab</Sizes>`:               false,
		item + `<Price currency="EUR">10.0</Price>`: true, item + `<Price>10.01</Price>`: false,
		item + `<Price currency="x">1</Price>`:        false,
		item + `<Bare a="1"><b xmlns=""/>text</Bare>`: true, item + `<Plain xmlns="">2024-01-01</Plain>`: true,
		item + `<Plain>2024-01-01</Plain>`: false,
		item + `<P/><Q unit=" kg ">AB</Q>`: true, item + `<P/><P/><P/>`: false, item + `<Q>AB</Q>`: false,
		item + `<P> </P>`: false,
		item + `<z xmlns="urn:z"><Root xmlns="urn:t"/></z>`: true, item + `<z xmlns="urn:y"/>`: false,
		item + `<z xmlns=""/>`: true,
	}
	args, names := []string{"--noout", "--nonet", "--schema", path}, []string{}
	for content, valid := range documents {
		text := `<Root xmlns="urn:t" no="1"><Id>AB</Id>` + content + `</Root>`
		doc, err := xmltree.Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if flaw := s.First(doc.Root); (flaw == nil) != valid {
			t.Errorf("%s: %v", content, flaw)
		}
		file := filepath.Join(t.TempDir(), "in.xml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args, names = append(args, file), append(names, content)
	}
	out, _ := exec.Command("xmllint", args...).CombinedOutput() // its status says that some are not valid
	for i, file := range args[4:] {
		if valid := strings.Contains(string(out), file+" validates"); valid != documents[names[i]] {
			t.Errorf("xmllint says valid=%v of %s", valid, names[i])
		}
	}
}

func TestWhatIsNotCarriedOverIsAnError(t *testing.T) {
	const open, end = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">`, `</xs:schema>`
	for name, text := range map[string]string{
		"redefine":        open + `<xs:redefine schemaLocation="part.xsd"/>` + end,
		"unknown type":    open + `<xs:element name="a" type="Nothing"/>` + end,
		"unknown prefix":  open + `<xs:element name="a" type="x:Nothing"/>` + end,
		"unknown address": open + `<xs:import namespace="urn:x" schemaLocation="http://example.com/x.xsd"/>` + end,
		"absent file":     open + `<xs:include schemaLocation="absent.xsd"/>` + end,
		"block":           open + `<xs:element name="a" block="extension"/>` + end,
		"broken pattern": open +
			`<xs:element name="a"><xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="[a"/></xs:restriction></xs:simpleType></xs:element>` + end,
		"bounded repetition": open +
			`<xs:element name="a"><xs:complexType><xs:sequence maxOccurs="2"><xs:element name="b" maxOccurs="3"/></xs:sequence></xs:complexType></xs:element>` + end,
		"own base":  open + `<xs:simpleType name="a"><xs:restriction base="a"/></xs:simpleType>` + end,
		"no schema": `<a/>`,
		"no XML":    `a`,
		"distant key": open +
			`<xs:element name="a"><xs:keyref name="k" refer="other"><xs:selector xpath="."/><xs:field xpath="@x"/></xs:keyref></xs:element>` + end,
	} {
		if _, _, err := compiled(t, text); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
