package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// secretPrefix marks a secret as base64, as Standard Webhooks writes them.
const secretPrefix = "whsec_"

// signer signs as Standard Webhooks v1 does: HMAC-SHA256 over
// "id.timestamp.body", in base64, one signature per secret.
type signer struct{ keys [][]byte }

func newSigner(secrets []Secret) (signer, error) {
	var s signer
	for i, sec := range secrets {
		key, err := parseSecret(string(sec))
		if err != nil {
			return signer{}, fmt.Errorf("secrets[%d]: %w", i, err)
		}
		s.keys = append(s.keys, key)
	}
	return s, nil
}

// parseSecret reads a secret. Its errors don't quote it.
func parseSecret(s string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(s, secretPrefix)
	if !ok {
		switch {
		case s == "":
			return nil, errors.New("is empty")
		case strings.HasPrefix(s, "whsk_"), strings.HasPrefix(s, "whpk_"):
			return nil, errors.New("is an asymmetric key (v1a); only symmetric whsec_ secrets are supported")
		}
		return []byte(s), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return nil, errors.New("is not base64 after whsec_")
	}
	return key, nil
}

// sign returns the value of the webhook-signature header, "" without secrets.
// The timestamp is the attempt's, in unix seconds, as it is sent.
func (s signer) sign(id, timestamp string, body []byte) string {
	if len(s.keys) == 0 {
		return ""
	}
	var out []byte
	var sum [sha256.Size]byte
	for _, key := range s.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id))
		mac.Write([]byte{'.'})
		mac.Write([]byte(timestamp))
		mac.Write([]byte{'.'})
		mac.Write(body)
		if len(out) > 0 {
			out = append(out, ' ')
		}
		out = append(out, "v1,"...)
		out = base64.StdEncoding.AppendEncode(out, mac.Sum(sum[:0]))
	}
	return string(out)
}
