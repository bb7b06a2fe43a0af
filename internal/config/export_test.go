package config

import "reflect"

// Key is one key of the file, as the structs define it.
type Key struct {
	Path       string // with [] for the entries of lists
	Default    string
	HasDefault bool
	Kind       reflect.Kind
}

// Keys walks the structs that the file is read into.
func Keys() []Key { return keysOf(reflect.TypeFor[Config](), "") }

func keysOf(t reflect.Type, path string) []Key {
	var keys []Key
	for f := range t.Fields() {
		name, oneOrMany := keyOf(f)
		if name == "" {
			continue
		}
		sub, ft := string(Path(path).key(name)), f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct {
			if ft = ft.Elem(); !oneOrMany {
				sub += "[]"
			}
		}
		if ft.Kind() == reflect.Struct && ft != urlType {
			keys = append(keys, keysOf(ft, sub)...)
			continue
		}
		d, ok := f.Tag.Lookup("default")
		keys = append(keys, Key{Path: sub, Default: d, HasDefault: ok, Kind: ft.Kind()})
	}
	return keys
}

// Written lists the paths that a configuration's file holds.
func Written(c *Config) []string {
	var paths []string
	for p := range c.src.places {
		paths = append(paths, string(p))
	}
	return paths
}
