package router_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// The same body as plain structs: encoding/json is the oracle.
type cloudEvent struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Type        string    `json:"type"`
	Source      string    `json:"source"`
	Subject     string    `json:"subject"`
	Time        string    `json:"time"`
	Sequence    string    `json:"sequence"`
	ContentType string    `json:"datacontenttype"`
	Data        eventData `json:"data"`
}

type eventData struct {
	Device     string      `json:"device"`
	Transition string      `json:"transition"`
	At         string      `json:"at"`
	Fence      *eventFence `json:"fence,omitempty"`
	Fix        eventFix    `json:"fix"`
	Since      string      `json:"since,omitempty"`
	EnteredAt  string      `json:"entered_at,omitempty"`
	ExitedAt   string      `json:"exited_at,omitempty"`
	DwellS     *float64    `json:"dwell_s,omitempty"`
	Initial    bool        `json:"initial,omitempty"`
	Reason     string      `json:"reason,omitempty"`
}

type eventFence struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Tags  []string        `json:"tags"`
	Props json.RawMessage `json:"props"`
}

type eventFix struct {
	Lat      float64         `json:"lat"`
	Lon      float64         `json:"lon"`
	TS       string          `json:"ts"`
	Accuracy *float64        `json:"accuracy,omitempty"`
	Speed    *float64        `json:"speed,omitempty"`
	Heading  *float64        `json:"heading,omitempty"`
	Alt      *float64        `json:"alt,omitempty"`
	Props    json.RawMessage `json:"props,omitempty"`
}

func viaEncodingJSON(t *testing.T, id, sequence string, tr *geofence.Transition) []byte {
	t.Helper()
	stamp := func(ms int64) string {
		return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	optional := func(has geofence.Fields, v float64) *float64 {
		if tr.Fix.Has&has == 0 {
			return nil
		}
		return &v
	}
	data := eventData{
		Device: tr.Device, Transition: tr.Kind.String(), At: stamp(tr.At),
		Fix: eventFix{
			Lat: tr.Fix.Lat, Lon: tr.Fix.Lon, TS: stamp(tr.Fix.TS),
			Accuracy: optional(geofence.HasAccuracy, tr.Fix.Accuracy),
			Speed:    optional(geofence.HasSpeed, tr.Fix.Speed),
			Heading:  optional(geofence.HasHeading, tr.Fix.Heading),
			Alt:      optional(geofence.HasAlt, tr.Fix.Alt),
			Props:    tr.Fix.Props,
		},
		Initial: tr.Initial, Reason: tr.Reason,
	}
	if f := tr.Fence; f != nil {
		data.Fence = &eventFence{ID: f.ID, Name: f.Name, Tags: append([]string{}, f.Tags...), Props: f.Props}
		if f.Props == nil {
			data.Fence.Props = json.RawMessage(`{}`)
		}
	}
	if tr.Since != 0 && tr.Since != tr.At {
		data.Since = stamp(tr.Since)
	}
	if tr.EnteredAt != 0 {
		data.EnteredAt = stamp(tr.EnteredAt)
	}
	if tr.ExitedAt != 0 {
		data.ExitedAt = stamp(tr.ExitedAt)
	}
	if tr.Kind == geofence.Dwell {
		seconds := tr.Dwell.Seconds()
		data.DwellS = &seconds
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(cloudEvent{
		SpecVersion: "1.0", ID: id, Type: "dev.tripline." + tr.Kind.String() + ".v1",
		Source: "/tripline/acme", Subject: tr.Device, Time: stamp(tr.At), Sequence: sequence,
		ContentType: "application/json", Data: data,
	}); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func TestBodyOfAnExit(t *testing.T) {
	tr := geofence.Transition{
		Kind: geofence.Exit, Device: "fleet.van7",
		Fence: &geofence.Fence{
			ID: "depot-1", Name: "Depot", Tags: []string{"cold", "north"},
			Props: json.RawMessage(`{"name":"Depot","tags":["cold","north"],"dock":3.50}`),
		},
		At: 1_700_000_300_007, Since: 1_700_000_290_000, EnteredAt: 1_700_000_000_000, ExitedAt: 1_700_000_300_007,
		Reason: geofence.ReasonInactive,
		Fix: geofence.Fix{
			Lat: 39.9075, Lon: -116.397, TS: 1_700_000_300_007,
			Has: geofence.HasSpeed | geofence.HasAccuracy, Speed: 0, Accuracy: 12.5,
			Props: []byte(`{"battery": 1e2}`),
		},
	}
	want := `{"specversion":"1.0","id":"ID","type":"dev.tripline.exit.v1","source":"/tripline/acme",` +
		`"subject":"fleet.van7","time":"2023-11-14T22:18:20.007Z","sequence":"SEQ","datacontenttype":"application/json",` +
		`"data":{"device":"fleet.van7","transition":"exit","at":"2023-11-14T22:18:20.007Z",` +
		`"fence":{"id":"depot-1","name":"Depot","tags":["cold","north"],"props":{"name":"Depot","tags":["cold","north"],"dock":3.50}},` +
		`"fix":{"lat":39.9075,"lon":-116.397,"ts":"2023-11-14T22:18:20.007Z","accuracy":12.5,"speed":0,"props":{"battery": 1e2}},` +
		`"since":"2023-11-14T22:18:10.000Z","entered_at":"2023-11-14T22:13:20.000Z","exited_at":"2023-11-14T22:18:20.007Z","reason":"inactive"}}`
	if got := string(router.AppendBody(nil, "acme", "ID", "SEQ", &tr)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBodyEqualsEncodingJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		tr := randomTransition(rng)
		got := router.AppendBody(nil, "acme", "ID", "SEQ", &tr)
		if want := viaEncodingJSON(t, "ID", "SEQ", &tr); !bytes.Equal(got, want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

func TestBodyStaysValidWithoutNumbers(t *testing.T) {
	tr := geofence.Transition{Kind: geofence.Silent, Device: "d", Fix: geofence.Fix{Lat: math.NaN(), Lon: math.Inf(-1)}}
	if body := router.AppendBody(nil, "acme", "ID", "SEQ", &tr); !json.Valid(body) {
		t.Errorf("not JSON: %s", body)
	}
}

func randomTransition(rng *rand.Rand) geofence.Transition {
	kinds := router.Kinds()
	tr := geofence.Transition{
		Kind: kinds[rng.IntN(len(kinds))], Device: randomString(rng),
		At: rng.Int64N(4e12), Initial: rng.IntN(3) == 0, Dwell: time.Duration(rng.Int64N(1e13)),
		Fix: geofence.Fix{
			Lat: randomFloat(rng), Lon: randomFloat(rng), TS: rng.Int64N(4e12), Has: geofence.Fields(rng.IntN(16)),
			Accuracy: randomFloat(rng), Speed: randomFloat(rng), Heading: randomFloat(rng), Alt: randomFloat(rng),
		},
	}
	maybe := func(v *int64) {
		if rng.IntN(2) == 0 {
			*v = rng.Int64N(4e12)
		}
	}
	maybe(&tr.Since)
	maybe(&tr.EnteredAt)
	maybe(&tr.ExitedAt)
	if rng.IntN(3) == 0 {
		tr.Reason = randomString(rng)
	}
	if rng.IntN(2) == 0 {
		tr.Fix.Props, _ = json.Marshal(map[string]float64{"a": randomFloat(rng)})
	}
	if rng.IntN(8) != 0 {
		tr.Fence = &geofence.Fence{ID: randomString(rng), Name: randomString(rng)}
		for range rng.IntN(3) {
			tr.Fence.Tags = append(tr.Fence.Tags, randomString(rng))
		}
		if rng.IntN(2) == 0 {
			tr.Fence.Props = json.RawMessage(`{"k":[1,{"x":null}]}`)
		}
	}
	return tr
}

func randomString(rng *rand.Rand) string {
	alphabet := []string{"a", "Z", "0", ".", `"`, `\`, "/", "<", "&", "\n", "\t", "\x00", "\x1f", "\x7f", "ü", "日", "🚚", "\u2028", "\u2029", "\xff", "\xc3", "\b", "\f", "\r"}
	var b strings.Builder
	for range 1 + rng.IntN(12) {
		b.WriteString(alphabet[rng.IntN(len(alphabet))])
	}
	return b.String()
}

func randomFloat(rng *rand.Rand) float64 {
	switch rng.IntN(6) {
	case 0:
		return float64(rng.IntN(360) - 180)
	case 1:
		return rng.Float64() * 1e-9
	case 2:
		return rng.Float64() * 1e25
	case 3:
		return math.Float64frombits(rng.Uint64() &^ (0x7ff << 52))
	case 4:
		return -rng.Float64() * 1e-7
	}
	return rng.Float64()*360 - 180
}

func BenchmarkBody(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	tr := randomTransition(rng)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = router.AppendBody(buf[:0], "acme", "ID", "SEQ", &tr)
	}
	b.SetBytes(int64(len(buf)))
}
