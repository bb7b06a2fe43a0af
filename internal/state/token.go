package state

import (
	"errors"
	"strings"
)

const upperHex = "0123456789ABCDEF"

// token encodes an id, which may hold anything, as one subject token: letters,
// digits, - and _ stand for themselves, every other byte is = and two hex
// digits. An id with many dots stays one token, so that subjects don't grow
// deep.
func token(id string) string {
	plain := true
	for i := range len(id) {
		plain = plain && isPlain(id[i])
	}
	if plain {
		return id
	}
	var b strings.Builder
	b.Grow(len(id) + 8)
	for i := range len(id) {
		c := id[i]
		if isPlain(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('=')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&0xf])
	}
	return b.String()
}

func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

var errToken = errors.New("not an encoded id")

// untoken undoes token. It takes nothing that token would not give.
func untoken(tok string) (string, error) {
	if !strings.Contains(tok, "=") {
		for i := range len(tok) {
			if !isPlain(tok[i]) {
				return "", errToken
			}
		}
		return tok, nil
	}
	b := make([]byte, 0, len(tok))
	for i := 0; i < len(tok); i++ {
		if isPlain(tok[i]) {
			b = append(b, tok[i])
			continue
		}
		if tok[i] != '=' || i+2 >= len(tok) {
			return "", errToken
		}
		hi := strings.IndexByte(upperHex, tok[i+1])
		lo := strings.IndexByte(upperHex, tok[i+2])
		if hi < 0 || lo < 0 || isPlain(byte(hi<<4|lo)) {
			return "", errToken
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	return string(b), nil
}
