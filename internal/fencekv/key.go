package fencekv

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Key returns the bucket's key for a fence id. Letters, digits, - and _ stay;
// every other byte becomes = and two hex digits, since keys allow few others.
func Key(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// ID returns the fence id of a key.
func ID(key string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(key); i++ {
		if key[i] != '=' {
			b.WriteByte(key[i])
			continue
		}
		if i+3 > len(key) {
			return "", fmt.Errorf("key %q ends within an escape", key)
		}
		c, err := hex.DecodeString(key[i+1 : i+3])
		if err != nil {
			return "", fmt.Errorf("key %q has %q where two hex digits belong", key, key[i+1:i+3])
		}
		b.Write(c)
		i += 2
	}
	return b.String(), nil
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
