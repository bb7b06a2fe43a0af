package geofence_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
)

var update = flag.Bool("update", false, "rewrite the transitions in testdata/journeys")

// Journeys are stories in text: fixes in, transitions out. How they are
// written is told in testdata/journeys/README.md.
func TestJourneys(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "journeys", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no journeys found", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runJourney(t, file) })
	}
}

// journey runs the one that a case of its own stands for.
func journey(t *testing.T, name string) {
	t.Helper()
	runJourney(t, filepath.Join("testdata", "journeys", name+".txt"))
}

func runJourney(t *testing.T, file string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	j := &traveller{origin: [2]float64{52.5, 13.4}, day: "2026-03-02"}
	lines := bufio.NewScanner(bytes.NewReader(want))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if strings.HasPrefix(strings.TrimSpace(line), "->") {
			continue
		}
		fmt.Fprintln(&got, line)
		out, err := j.step(line)
		if err != nil {
			t.Fatalf("%s:%d: %v", file, n, err)
		}
		for _, o := range out {
			fmt.Fprintf(&got, "    -> %s\n", o)
		}
	}
	if bytes.Equal(got.Bytes(), want) {
		return
	}
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := at(gotLines, i), at(wantLines, i)
		if g != w {
			t.Fatalf("%s:%d:\n got %q\nwant %q\n(-update rewrites it)", file, i+1, g, w)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}

// traveller carries out the lines of a journey.
type traveller struct {
	origin  [2]float64 // lat, lon
	day     string
	cfg     geofence.Config
	ix      *geofence.Index
	tracker *geofence.Tracker
	seq     uint64
	rev     uint64
	now     int64
	log     []geofence.Fix
	kept    map[string]*geofence.Fence // versions, as a store would keep them
}

func (j *traveller) step(line string) ([]string, error) {
	if i := strings.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil, nil
	}
	switch words[0] {
	case "origin":
		p, err := j.point(words[1])
		j.origin = p
		return nil, err
	case "day":
		j.day = words[1]
		return nil, nil
	case "config":
		return nil, j.configure(words[1:])
	case "fence":
		return nil, j.put(words[1:])
	}
	now, err := j.time(words[0])
	if err != nil {
		return nil, err
	}
	if j.tracker == nil {
		j.begin()
	}
	return j.happen(now, words[1:])
}

func (j *traveller) index() *geofence.Index {
	if j.ix == nil {
		j.ix, _ = geofence.NewIndex()
		j.kept = map[string]*geofence.Fence{}
	}
	return j.ix
}

func (j *traveller) begin() { j.tracker = geofence.NewTracker(j.index(), j.cfg) }

// happen carries out a line that begins with a time.
func (j *traveller) happen(now int64, words []string) ([]string, error) {
	switch words[0] {
	case "tick":
		j.now = max(j.now, now)
		return j.show(j.tracker.Advance(j.now, nil), ""), nil
	case "put":
		j.now = max(j.now, now)
		if err := j.put(words[1:]); err != nil {
			return nil, err
		}
		return j.show(j.tracker.Refence(j.now, nil), ""), nil
	case "delete":
		j.now = max(j.now, now)
		if err := j.ix.Apply(geofence.Change{Delete: words[1:]}); err != nil {
			return nil, err
		}
		return j.show(j.tracker.Refence(j.now, nil), ""), nil
	case "stop": // the fences may change until the start
		return nil, nil
	case "restart":
		return j.show(j.restart(), ""), nil
	case "inside":
		return []string{strings.Join(slices.Collect(j.tracker.Inside(words[1])), " ")}, nil
	}
	return j.fix(now, words)
}

func (j *traveller) fix(ts int64, words []string) ([]string, error) {
	p, err := j.point(words[1])
	if err != nil {
		return nil, err
	}
	j.seq++
	fix := geofence.Fix{Device: words[0], Lat: p[0], Lon: p[1], TS: ts, Stored: ts, Seq: j.seq}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		if key == "stored" {
			if fix.Stored, err = j.time(value); err != nil {
				return nil, err
			}
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, err
		}
		switch key {
		case "accuracy":
			fix.Has, fix.Accuracy = fix.Has|geofence.HasAccuracy, v
		case "alt":
			fix.Has, fix.Alt = fix.Has|geofence.HasAlt, v
		default:
			return nil, fmt.Errorf("unknown word %q", w)
		}
	}
	j.now = max(j.now, fix.Stored)
	fix.Stored = j.now
	j.log = append(j.log, fix)
	trs := j.tracker.Advance(j.now, nil)
	trs, result := j.tracker.Track(&fix, j.now, trs)
	note := ""
	if result != geofence.Accepted {
		note = result.String()
	}
	return j.show(trs, note), nil
}

// restart saves every presence, begins with an empty tracker, and gives it
// again what it had not judged.
func (j *traveller) restart() []geofence.Transition {
	old := j.tracker
	saved := map[string][]byte{}
	for device := range old.Devices() {
		if enc, ok := old.AppendPresence(nil, device); ok {
			saved[device] = enc
		}
	}
	j.begin()
	for _, device := range sortedKeys(saved) {
		err := j.tracker.Restore(device, saved[device], func(id string, rev uint64) *geofence.Fence {
			return j.kept[fmt.Sprint(id, "@", rev)]
		})
		if err != nil {
			panic(err)
		}
	}
	trs := j.tracker.Refence(j.now, nil)
	for i := range j.log {
		if j.log[i].Seq > j.tracker.Seq(j.log[i].Device) {
			trs = j.tracker.Advance(j.log[i].Stored, trs)
			trs, _ = j.tracker.Track(&j.log[i], j.log[i].Stored, trs)
		}
	}
	return trs
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (j *traveller) show(trs []geofence.Transition, note string) []string {
	var out []string
	for _, tr := range trs {
		s := fmt.Sprintf("%s %s", tr.Device, tr.Kind)
		if tr.Fence != nil {
			s += " " + tr.Fence.ID
		}
		s += " at " + clock(tr.At)
		if tr.Since != tr.At {
			s += " since " + clock(tr.Since)
		}
		if tr.EnteredAt != 0 && tr.Kind != geofence.Enter {
			s += " entered " + clock(tr.EnteredAt)
		}
		if tr.Dwell != 0 {
			s += " after " + tr.Dwell.String()
		}
		if tr.Initial {
			s += " initial"
		}
		if tr.Reason != "" {
			s += " (" + tr.Reason
			if tr.Revision != 0 {
				s += fmt.Sprintf(", revision %d", tr.Revision)
			}
			s += ")"
		}
		out = append(out, s)
	}
	if note != "" {
		out = append(out, note)
	}
	return out
}

func clock(ms int64) string {
	return strings.TrimSuffix(time.UnixMilli(ms).UTC().Format("15:04:05.000"), ".000")
}

func (j *traveller) time(text string) (int64, error) {
	t, err := time.Parse("2006-01-02 15:04:05", j.day+" "+text)
	if err != nil {
		return 0, err
	}
	return t.UnixMilli(), nil
}

// point reads "120e,-40n", metres from the origin, or "lat,lon".
func (j *traveller) point(text string) ([2]float64, error) {
	a, b, _ := strings.Cut(text, ",")
	if before, ok := strings.CutSuffix(a, "e"); ok {
		east, err1 := strconv.ParseFloat(before, 64)
		north, err2 := strconv.ParseFloat(strings.TrimSuffix(b, "n"), 64)
		if err1 != nil || err2 != nil {
			return [2]float64{}, fmt.Errorf("%q is not a point", text)
		}
		const degree = 6371008.8 * math.Pi / 180
		return [2]float64{
			j.origin[0] + north/degree,
			j.origin[1] + east/degree/math.Cos(j.origin[0]*math.Pi/180),
		}, nil
	}
	lat, err1 := strconv.ParseFloat(a, 64)
	lon, err2 := strconv.ParseFloat(b, 64)
	if err1 != nil || err2 != nil {
		return [2]float64{}, fmt.Errorf("%q is not a point", text)
	}
	return [2]float64{lat, lon}, nil
}

func (j *traveller) configure(words []string) error {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		var err error
		number := func() float64 {
			var v float64
			v, err = strconv.ParseFloat(value, 64)
			return v
		}
		span := func() time.Duration {
			var d time.Duration
			d, err = time.ParseDuration(value)
			return d
		}
		switch key {
		case "confirm":
			j.cfg.Confirm = int(number())
		case "exit_buffer_m":
			j.cfg.ExitBufferM = number()
		case "max_accuracy_m":
			j.cfg.MaxAccuracyM = number()
		case "max_speed":
			j.cfg.MaxSpeed = number()
		case "reorder":
			j.cfg.Reorder = span()
		case "dwell":
			j.cfg.Dwell = append(j.cfg.Dwell, span())
		case "silent_after":
			j.cfg.SilentAfter = span()
		case "forget_after":
			j.cfg.ForgetAfter = span()
		case "inside_every":
			j.cfg.Inside, j.cfg.InsideEvery = true, span()
		case "cross":
			j.cfg.Cross = true
		case "silent_initial":
			j.cfg.SilentInitial = true
		default:
			return fmt.Errorf("unknown rule %q", w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// put adds or replaces fences at once; a semicolon parts them.
func (j *traveller) put(words []string) error {
	var c geofence.Change
	for len(words) > 0 {
		n := slices.Index(words, ";")
		if n < 0 {
			n = len(words)
		}
		f, err := j.fence(words[:n])
		if err != nil {
			return err
		}
		c.Put = append(c.Put, f)
		words = words[min(n+1, len(words)):]
	}
	return j.index().Apply(c)
}

// fence reads ID circle|polygon|line POINT... key=value...
func (j *traveller) fence(words []string) (*geofence.Fence, error) {
	id, kind := words[0], words[1]
	var pts [][2]float64
	props := map[string]any{}
	for _, w := range words[2:] {
		key, value, isProp := strings.Cut(w, "=")
		switch {
		case !isProp:
			p, err := j.point(w)
			if err != nil {
				return nil, err
			}
			pts = append(pts, [2]float64{p[1], p[0]})
		case key == "dwell":
			props[key] = strings.Split(value, ",")
		case key == "active":
			part := strings.Split(value, "|")
			props[key] = map[string]any{"zone": part[0], "days": []string{part[1]}, "hours": []string{part[2]}}
		default:
			props[key] = json.Number(value)
		}
	}
	geometry := map[string]any{"type": "Point", "coordinates": pts[0]}
	switch kind {
	case "polygon":
		geometry = map[string]any{"type": "Polygon", "coordinates": [][][2]float64{append(pts, pts[0])}}
	case "line":
		geometry = map[string]any{"type": "LineString", "coordinates": pts}
	}
	data, err := json.Marshal(map[string]any{"type": "Feature", "id": id, "properties": props, "geometry": geometry})
	if err != nil {
		return nil, err
	}
	fences, err := geofence.ParseFences(data)
	if err != nil {
		return nil, err
	}
	j.rev++
	f := fences[0].WithRevision(j.rev)
	j.index()
	j.kept[fmt.Sprint(id, "@", j.rev)] = f
	return f, nil
}
