package ingest_test

import (
	"encoding/json"
	"testing"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/ingest"
)

// benchPayloads are what the load generator, a fleet tracker and a phone send.
var benchPayloads = map[string]string{
	"short":     `{"lat":39.906217,"lon":116.391276,"ts":1790000000123}`,
	"full":      `{"lat":39.906217,"lon":116.391276,"ts":"2026-09-21T14:13:20.123Z","accuracy":4.5,"speed":13.9,"heading":271.5,"alt":44.1,"props":{"driver":"d-17","load_kg":312.5,"tags":["a","b"]}}`,
	"owntracks": `{"_type":"location","BSSID":"00:11:22:33:44:55","SSID":"net","acc":13,"alt":44,"batt":87,"bs":1,"conn":"w","created_at":1790000001,"lat":39.906217,"lon":116.391276,"m":1,"t":"u","tid":"ph","topic":"owntracks/ann/phone","tst":1790000000,"vac":3,"vel":36}`,
}

func BenchmarkFixDecode(b *testing.B) {
	for name, payload := range benchPayloads {
		data := []byte(payload)
		b.Run(name+"/tripline", func(b *testing.B) {
			b.ReportAllocs()
			fix := geofence.Fix{Device: "car-7", Stored: 1_790_000_000_123}
			for b.Loop() {
				if err := ingest.Decode(data, &fix); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/encoding-json", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var l struct {
					Lat, Lon                      *float64
					TS                            json.RawMessage
					Accuracy, Speed, Heading, Alt *float64
					Tst, Acc, Vel, Cog            *float64
					Props                         json.RawMessage
					Type                          string `json:"_type"`
					ID, Device                    string
				}
				if err := json.Unmarshal(data, &l); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	for name, payload := range benchPayloads {
		data := []byte(payload)
		fix := geofence.Fix{Device: "car-7", Stored: 1_790_000_000_123}
		allocs := testing.AllocsPerRun(100, func() {
			if err := ingest.Decode(data, &fix); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations per fix", name, allocs)
		}
	}
}
