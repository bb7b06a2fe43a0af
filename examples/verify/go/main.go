// Command go takes Tripline's webhooks with nothing but the standard library:
// it verifies each signature and acts once on each trigger.
//
//	WEBHOOK_SECRET=whsec_... go run ./examples/verify/go
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tolerance is how old an attempt may be: an old one may be somebody's replay.
const tolerance = 5 * time.Minute

func main() {
	key, err := parseSecret(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	c := &consumer{key: key, newest: map[string]string{}, redriven: map[string]bool{}}
	l, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "9000"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s/\n", l.Addr())
	log.Fatal(http.Serve(l, c))
}

// parseSecret: after whsec_ it is base64, else it is taken as it is.
func parseSecret(secret string) ([]byte, error) {
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		return base64.StdEncoding.DecodeString(encoded)
	}
	if secret == "" {
		return nil, errors.New("set WEBHOOK_SECRET")
	}
	return []byte(secret), nil
}

// verify holds an attempt against its signatures. The body must be the bytes
// as they came, before any JSON is read.
func verify(key []byte, h http.Header, body []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return errors.New("no timestamp, or one too far from now")
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", h.Get("webhook-id"), h.Get("webhook-timestamp"))
	mac.Write(body)
	want := mac.Sum(nil)
	// While a secret is changed there are several, with spaces between.
	for one := range strings.FieldsSeq(h.Get("webhook-signature")) {
		encoded, ok := strings.CutPrefix(one, "v1,")
		if got, err := base64.StdEncoding.DecodeString(encoded); ok && err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return errors.New("no signature fits")
}

type trigger struct {
	ID       string
	Sequence string
	Data     struct {
		Device, Transition string
		Fence              struct{ ID string }
	}
}

type consumer struct {
	key []byte

	mu       sync.Mutex
	newest   map[string]string // the highest sequence acted on, by device
	redriven map[string]bool   // ids of those that an operator sent again
}

func (c *consumer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "can't be read", http.StatusRequestTimeout)
		return
	}
	if err := verify(c.key, r.Header, body, time.Now()); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var t trigger
	if err := json.Unmarshal(body, &t); err != nil {
		http.Error(w, "no trigger", http.StatusUnprocessableEntity)
		return
	}
	if err := c.take(t, r.Header.Get("tripline-redriven") == "true"); err != nil {
		http.Error(w, "later", http.StatusServiceUnavailable) // it comes again
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// take acts on a trigger that is new. What it remembers belongs into the same
// database transaction as what act does; here it is in memory.
func (c *consumer) take(t trigger, redriven bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A device's triggers come in order, and sequence rises: one value per
	// device tells a repeat. A redriven one comes after its time, so its id
	// tells.
	if redriven && c.redriven[t.ID] || !redriven && t.Sequence <= c.newest[t.Data.Device] {
		fmt.Println("duplicate", t.ID)
		return nil
	}
	if err := act(t); err != nil {
		return err
	}
	if redriven {
		c.redriven[t.ID] = true
	} else {
		c.newest[t.Data.Device] = t.Sequence
	}
	return nil
}

// act is your own part.
func act(t trigger) error {
	_, err := fmt.Println("new", t.ID, t.Data.Device, t.Data.Transition, t.Data.Fence.ID)
	return err
}
