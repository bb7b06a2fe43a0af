package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/tripline/tripline/internal/secret"
)

// secret reads a secret or a URL, looking up env: and file:.
func (d decoder) secret(n *node, v reflect.Value, path Path) {
	if n.kind != isText {
		d.src.addAt(n.line, n.column, path, fmt.Sprintf("%s must be text: put it in quotes, or write env:NAME or file:PATH", path))
		return
	}
	text, ok := d.src.lookUp(n, path, v.Type() == secretType)
	if !ok {
		return
	}
	if v.Type() == urlType {
		v.Set(reflect.ValueOf(NewURL(text)))
		return
	}
	v.Set(reflect.ValueOf(secret.Value(text)))
}

func (s *source) lookUp(n *node, path Path, secret bool) (string, bool) {
	if name, ok := strings.CutPrefix(n.text, "env:"); ok {
		text, found := s.env(name)
		if !found || text == "" {
			s.add(path, "%s: the environment variable %s is not set: set it before you start Tripline", path, name)
			return "", false
		}
		return text, true
	}
	if name, ok := strings.CutPrefix(n.text, "file:"); ok {
		text, err := s.readFile(s.resolve(name))
		if err != nil {
			s.add(path, "%s: %v (relative paths start at the folder of this file)", path, err)
			return "", false
		}
		trimmed := strings.TrimRight(string(text), "\r\n")
		if trimmed == "" {
			s.add(path, "%s: the file %s is empty", path, s.resolve(name))
			return "", false
		}
		return trimmed, true
	}
	if secret && n.text != "" {
		s.hide(n)
		s.warn(path, "%s is written in plain text: use env:NAME or file:PATH", path)
	}
	return n.text, true
}
