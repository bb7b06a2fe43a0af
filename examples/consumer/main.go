// Command consumer is an example of what receives Tripline's triggers: it
// checks each signature, drops late duplicates, and prints the rest.
//
//	go run ./examples/consumer -secret-file examples/webhook-secret.txt
//
// With -delay 900ms it plays a service that has become too slow.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9000", "address to listen on")
	file := flag.String("secret-file", "", "file with the shared secret; without it, the environment's WEBHOOK_SECRET")
	delay := flag.Duration("delay", 0, "wait this long before each answer")
	flag.Parse()
	log.SetFlags(log.Ltime)
	secret := os.Getenv("WEBHOOK_SECRET")
	if *file != "" {
		data, err := os.ReadFile(*file)
		if err != nil {
			log.Fatal(err)
		}
		secret = strings.TrimSpace(string(data))
	}
	c, err := newConsumer(secret, log.Default())
	if err != nil {
		log.Fatal(err)
	}
	c.delay = *delay
	server := &http.Server{Addr: *listen, Handler: c, ReadHeaderTimeout: 5 * time.Second}
	log.Printf("listening on http://%s/", *listen)
	log.Fatal(server.ListenAndServe())
}

// trigger is the part of a trigger's body that is used here.
type trigger struct {
	ID       string `json:"id"`
	Sequence string `json:"sequence"`
	Data     struct {
		Device     string    `json:"device"`
		Transition string    `json:"transition"`
		At         time.Time `json:"at"`
		Fence      struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"fence"`
	} `json:"data"`
}

// consumer takes triggers over HTTP.
type consumer struct {
	verify func(body []byte, h http.Header) error
	log    *log.Logger
	delay  time.Duration

	mu     sync.Mutex
	newest map[string]string // the highest sequence seen of each device
	ids    map[string]bool   // of triggers that an operator sent again
}

func newConsumer(secret string, l *log.Logger) (*consumer, error) {
	c := &consumer{log: l, newest: map[string]string{}, ids: map[string]bool{}}
	if secret == "" {
		return nil, errors.New("no secret: set WEBHOOK_SECRET, or give -secret-file")
	}
	// A secret without whsec_ is not base64 but taken as it is.
	w, err := webhooks.NewWebhookRaw([]byte(secret))
	if strings.HasPrefix(secret, "whsec_") {
		w, err = webhooks.NewWebhook(secret)
	}
	if err != nil {
		return nil, err
	}
	c.verify = w.Verify
	return c, nil
}

// ServeHTTP answers 2xx when the trigger is taken. Anything else makes
// Tripline keep it and send it again; only 400, 413, 415 and 422 say "never".
func (c *consumer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body can't be read", http.StatusBadRequest)
		return
	}
	if err := c.verify(body, r.Header); err != nil {
		c.log.Printf("refused: %v", err)
		http.Error(w, "wrong signature", http.StatusUnauthorized)
		return
	}
	var t trigger
	if err := json.Unmarshal(body, &t); err != nil {
		http.Error(w, "no trigger", http.StatusUnprocessableEntity)
		return
	}
	time.Sleep(c.delay)
	if c.isNew(t, r.Header.Get("tripline-redriven") == "true") {
		c.log.Print(describe(t))
	} else {
		c.log.Printf("%s (seen before, dropped)", describe(t))
	}
	w.WriteHeader(http.StatusNoContent)
}

// isNew says whether a trigger is to be acted on. A device's triggers come in
// order, and their sequence rises: one number per device is enough to drop a
// duplicate that comes late. A redriven trigger comes after what has passed,
// so it is judged by its id.
func (c *consumer) isNew(t trigger, redriven bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if redriven {
		known := c.ids[t.ID]
		c.ids[t.ID] = true
		return !known
	}
	if t.Sequence <= c.newest[t.Data.Device] {
		return false
	}
	c.newest[t.Data.Device] = t.Sequence
	return true
}

func describe(t trigger) string {
	place := t.Data.Fence.Name
	if place == "" {
		place = t.Data.Fence.ID
	}
	return fmt.Sprintf("%s  %-8s %-6s %s", t.Data.At.UTC().Format(time.RFC3339), t.Data.Device, t.Data.Transition, place)
}
