package fencekv_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tripline/tripline/internal/fencekv"
	"github.com/tripline/tripline/internal/natstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const circle = `{"type":"Feature","properties":{"radius_m":100},"geometry":{"type":"Point","coordinates":[4,52]}}`

func TestKeysAreReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.String().Draw(t, "id")
		key := fencekv.Key(id)
		if back, err := fencekv.ID(key); err != nil || back != id {
			t.Fatalf("ID(Key(%q)) = %q, %v", id, back, err)
		}
		if strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=") != "" {
			t.Fatalf("Key(%q) = %q has a character that a bucket refuses", id, key)
		}
	})
	for _, bad := range []string{"a=", "a=4", "a=zz"} {
		if _, err := fencekv.ID(bad); err == nil {
			t.Errorf("ID(%q) is no error", bad)
		}
	}
}

func TestParseKeepsIDsStraight(t *testing.T) {
	f, err := fencekv.Parse("yard", []byte(circle))
	if err != nil || f.ID != "yard" {
		t.Errorf("a feature without an id: %v %v, want it to get the key's", f, err)
	}
	for name, data := range map[string]string{
		"another id":  strings.Replace(circle, `{"type"`, `{"id":"depot","type"`, 1),
		"collection":  `{"type":"FeatureCollection","features":[]}`,
		"no geometry": `{"type":"Feature","properties":{},"geometry":null}`,
		"no JSON":     `{`,
		"bad circle":  strings.Replace(circle, "100", "-1", 1),
	} {
		if f, err := fencekv.Parse("yard", []byte(data)); err == nil {
			t.Errorf("%s: %v, want an error", name, f)
		}
	}
}

func TestWatchTellsTheWholeThenChanges(t *testing.T) {
	server := natstest.Start(t)
	js := server.JetStream(t)
	bucket, err := fencekv.Open(t.Context(), js, "tripline", 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	put := func(id string) {
		t.Helper()
		f, err := fencekv.Parse(id, []byte(circle))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bucket.Put(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	put("b.c")
	put("gone")
	if err := bucket.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), fencekv.BucketName("tripline"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(t.Context(), "bad", "{"); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var told []fencekv.Update
	done := errors.New("seen enough")
	err = bucket.Watch(ctx, func(u fencekv.Update) error {
		told = append(told, u)
		switch len(told) {
		case 1:
			put("d")
		case 2:
			return bucket.Delete(ctx, "a")
		case 3:
			return done
		}
		return nil
	})
	if !errors.Is(err, done) {
		t.Fatalf("Watch: %v", err)
	}
	whole := told[0]
	if !whole.Whole || len(whole.Fences) != 2 || whole.Fences["a"] == nil || whole.Fences["b.c"] == nil || len(whole.Problems) != 1 {
		t.Errorf("first: %+v, want a and b.c whole, and one problem", whole)
	}
	if told[1].Whole || told[1].Fences["d"] == nil {
		t.Errorf("second: %+v, want d", told[1])
	}
	if f, named := told[2].Fences["a"]; !named || f != nil {
		t.Errorf("third: %+v, want a deleted", told[2])
	}
}
