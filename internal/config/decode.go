package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tripline/tripline/internal/secret"
)

// decoder fills the structs of this package from nodes. Their tags say it
// all: yaml (the key), default, min, max, oneof (comma-separated), hint (what
// to add to a range error) and file (a path, made absolute from the folder of
// the configuration).
type decoder struct{ src *source }

func decode(src *source, n *node, cfg *Config) {
	d := decoder{src}
	v := reflect.ValueOf(cfg).Elem()
	d.defaults(v)
	d.into(n, v, "", "")
}

var (
	secretType = reflect.TypeFor[secret.Value]()
	urlType    = reflect.TypeFor[URL]()
	pathType   = reflect.TypeFor[Path]()
)

// keyOf is a field's key and whether a list may stand as its only entry.
func keyOf(f reflect.StructField) (key string, oneOrMany bool) {
	key, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if key == "-" {
		key = ""
	}
	return key, rest == "oneormany"
}

// defaults sets what the default tags say, in this struct and those in it.
func (d decoder) defaults(v reflect.Value) {
	for i := range v.NumField() {
		f, field := v.Type().Field(i), v.Field(i)
		if key, _ := keyOf(f); key == "" {
			continue
		}
		text, ok := f.Tag.Lookup("default")
		switch {
		case field.Kind() == reflect.Struct && field.Type() != secretType && field.Type() != urlType:
			d.defaults(field)
		case ok && field.Kind() == reflect.Slice:
			list := strings.Split(text, ", ")
			field.Set(reflect.ValueOf(list))
		case ok:
			if err := setScalar(field, text); err != nil {
				panic(fmt.Sprintf("config: default of %s: %v", f.Name, err)) // a test walks all of them
			}
		}
	}
}

// defaultsOf sets the defaults of a struct that no file mentions.
func (d decoder) defaultsOf(p any) { d.defaults(reflect.ValueOf(p).Elem()) }

// into fills a value from a node that is written in the file.
func (d decoder) into(n *node, v reflect.Value, path Path, tag reflect.StructTag) {
	if n.kind == isNull {
		return // an empty key is as good as none
	}
	switch {
	case v.Type() == secretType, v.Type() == urlType:
		d.secret(n, v, path)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.defaults(v.Elem())
		d.into(n, v.Elem(), path, tag)
	case v.Kind() == reflect.Struct:
		if d.want(n, isMap, path) {
			d.structure(n, v, path)
		}
	case v.Kind() == reflect.Slice:
		if d.want(n, isList, path) {
			d.list(n, v, path, tag)
		}
	case v.Kind() == reflect.Map:
		if d.want(n, isMap, path) {
			d.dictionary(n, v, path)
		}
	default:
		d.scalar(n, v, path, tag)
	}
}

// want reports a node of another kind than the key takes.
func (d decoder) want(n *node, k kind, path Path) bool {
	if n.kind == k {
		return true
	}
	fix := ""
	switch {
	case k == isList && n.kind == isText && !strings.Contains(string(path), "secrets"):
		fix = fmt.Sprintf(": write [%q]", n.text)
	case k == isList && n.kind == isMap:
		fix = ": begin the entry with a dash"
	case k == isMap:
		fix = ": write its keys below it, indented"
	}
	d.src.addAt(n.line, n.column, path, fmt.Sprintf("%s must be %s, not %s%s", named(path), k, n.kind, fix))
	return false
}

func named(path Path) string { return cmp.Or(string(path), "the file") }

func (d decoder) structure(n *node, v reflect.Value, path Path) {
	fields, known := map[string]int{}, []string(nil)
	for i := range v.NumField() {
		if v.Type().Field(i).Type == pathType {
			v.Field(i).SetString(string(path))
		}
		if key, _ := keyOf(v.Type().Field(i)); key != "" {
			fields[key] = i
			known = append(known, key)
		}
	}
	for _, e := range n.entries {
		i, ok := fields[e.key]
		if !ok {
			where := ""
			if path != "" {
				where = " in " + string(path)
			}
			fix, near := didYouMean(e.key, known)
			if fix == "" {
				fix = "; known are: " + strings.Join(known, ", ")
			}
			if near == "" || isSecret(v.Type().Field(fields[near]).Type) {
				d.src.hide(e.value) // it may be a secret under a mistyped key
			}
			d.src.addAt(e.line, e.column, path.key(e.key), fmt.Sprintf("unknown key %q%s%s", e.key, where, fix))
			continue
		}
		f := v.Type().Field(i)
		sub := path.key(e.key)
		d.src.places[sub] = Place{d.src.file, e.value.line, e.value.column}
		_, oneOrMany := keyOf(f)
		if oneOrMany && e.value.kind == isMap {
			d.element(e.value, v.Field(i), sub)
			continue
		}
		if oneOrMany && e.value.kind != isList && e.value.kind != isNull {
			d.src.add(sub, "%s must be a map, or a list of maps, not %s", sub, e.value.kind)
			continue
		}
		d.into(e.value, v.Field(i), sub, f.Tag)
	}
}

func isSecret(t reflect.Type) bool {
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t == secretType || t == urlType
}

func (p Path) key(k string) Path {
	if p == "" {
		return Path(k)
	}
	return p + "." + Path(k)
}

func (p Path) index(i int) Path { return Path(fmt.Sprintf("%s[%d]", p, i)) }

// element appends one struct to a list.
func (d decoder) element(n *node, list reflect.Value, path Path) {
	one := reflect.New(list.Type().Elem()).Elem()
	d.defaults(one)
	d.into(n, one, path, "")
	list.Set(reflect.Append(list, one))
}

func (d decoder) list(n *node, v reflect.Value, path Path, tag reflect.StructTag) {
	v.Set(reflect.MakeSlice(v.Type(), 0, len(n.items))) // what is written replaces the default
	for i, item := range n.items {
		sub := path.index(i)
		d.src.places[sub] = Place{d.src.file, item.line, item.column}
		if item.kind == isNull {
			d.src.add(sub, "%s is empty: fill it in or remove it", sub)
			continue
		}
		if v.Type().Elem().Kind() == reflect.Struct && v.Type().Elem() != secretType {
			d.element(item, v, sub)
			continue
		}
		one := reflect.New(v.Type().Elem()).Elem()
		d.into(item, one, sub, tag)
		v.Set(reflect.Append(v, one))
	}
}

func (d decoder) dictionary(n *node, v reflect.Value, path Path) {
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range n.entries {
		sub := path.key(e.key)
		d.src.places[sub] = Place{d.src.file, e.value.line, e.value.column}
		one := reflect.New(v.Type().Elem()).Elem()
		d.into(e.value, one, sub, "")
		v.SetMapIndex(reflect.ValueOf(e.key), one)
	}
}

func (d decoder) scalar(n *node, v reflect.Value, path Path, tag reflect.StructTag) {
	fail := func(format string, args ...any) {
		d.src.addAt(n.line, n.column, path, fmt.Sprintf("%s ", path)+fmt.Sprintf(format, args...))
	}
	if n.kind == isMap || n.kind == isList {
		fail("must be a single value, not %s", n.kind)
		return
	}
	if v.Kind() == reflect.String && n.kind != isText {
		fail("must be text: put it in quotes, as in %q", n.text)
		return
	}
	if v.Kind() != reflect.String && n.text == "" {
		return // "" stands for the default
	}
	if err := setScalar(v, n.text); err != nil {
		fail("%v, not %q", err, n.text)
		return
	}
	if list := tag.Get("oneof"); list != "" {
		words := strings.Split(list, ",")
		if !slices.Contains(words, v.String()) {
			suggestion, _ := didYouMean(v.String(), words)
			fail("must be one of %s, not %q%s", strings.Join(words, ", "), v.String(), suggestion)
		}
	}
	if msg := outOfRange(v, tag); msg != "" {
		fail("%s, not %s", msg, n.text)
	}
	if tag.Get("file") != "" && v.String() != "" {
		v.SetString(d.src.resolve(v.String()))
	}
}

// resolve makes a path of the file usable from the working directory.
func (s *source) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.dir, path)
}
