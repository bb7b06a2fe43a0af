package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/tripline/tripline/router"
	"github.com/tripline/tripline/router/webhook"
)

// A consumer verifies what it gets with any Standard Webhooks library.
func ExampleSink_Deliver() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	consumer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		verifier, _ := standardwebhooks.NewWebhook(secret)
		if err := verifier.Verify(body, r.Header); err != nil {
			http.Error(w, "bad signature", http.StatusUnauthorized)
			return
		}
		if strings.Contains(string(body), "nowhere") {
			http.Error(w, "unknown fence", http.StatusUnprocessableEntity)
			return
		}
		fmt.Println("got", r.Header.Get("webhook-id"))
		w.WriteHeader(http.StatusNoContent)
	}))
	defer consumer.Close()

	sink := webhook.New(webhook.Config{URL: consumer.URL, Secrets: []webhook.Secret{secret}, Timeout: 2 * time.Second})
	defer sink.Close()

	ctx := context.Background()
	fmt.Println(sink.Deliver(ctx, router.Trigger{ID: "MZXW6", Body: []byte(`{"data":{"fence":"depot"}}`)}))
	err := sink.Deliver(ctx, router.Trigger{ID: "MZXW7", Body: []byte(`{"data":{"fence":"nowhere"}}`)})
	if d, ok := errors.AsType[*router.DeliveryError](err); ok && d.Cause == router.Rejected {
		fmt.Println("rejected for good with", d.Status)
	}
	// Output:
	// got MZXW6
	// <nil>
	// rejected for good with 422
}
