package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/tracks"
)

type publishCmd struct {
	File    string `arg:"" help:"Recorded fixes: CSV, NDJSON or GPX, also gzipped; - is standard input."`
	Speed   string `default:"max" placeholder:"N" help:"1x as recorded, 10x ten times as fast, max as fast as it goes."`
	Subject string `default:"location.{device}" placeholder:"SUBJECT" help:"Subject to publish on; {device} is the device id."`

	Device     string        `help:"Device of rows that name none."`
	TrackNames bool          `help:"Take the names of a GPX file's tracks as devices, not the file's name."`
	SkipBad    bool          `help:"Pass over rows that are no fix, and count them, instead of stopping at the first."`
	RetryFor   time.Duration `default:"30s" help:"How long to try again what is not acknowledged before giving up."`
	JSON       bool          `name:"json" help:"Print the counts as JSON."`

	connection
}

// Help is shown by --help.
func (*publishCmd) Help() string {
	return `Each fix is published with an id made of device and ts and counts once it is
acknowledged, so the same file can be published again: nothing happens twice.

Examples:

  tripline publish history.csv.gz
  tripline publish ride.gpx --speed 10x --subject 'location.{device}'`
}

// Run publishes the file.
func (c *publishCmd) Run(s streams) error {
	speed, err := parseSpeed(c.Speed)
	if err != nil {
		return usageError{err}
	}
	if !strings.Contains(c.Subject, "{device}") {
		return usageError{fmt.Errorf("--subject %s has no {device}", c.Subject)}
	}
	r, err := tracks.Open(c.File, tracks.Options{Device: c.Device, TrackNames: c.TrackNames, Stdin: s.in})
	if err != nil {
		return err
	}
	defer r.Close()
	nc, err := c.dial()
	if err != nil {
		return err
	}
	defer nc.Close()
	p, err := newPublisher(nc, c.RetryFor)
	if err != nil {
		return err
	}
	defer p.close()

	job := publishJob{cmd: c, rows: r, pub: p, speed: speed, devices: map[string]int{}, start: time.Now()}
	job.meter = newMeter(s, r)
	err = job.run(s.ctx)
	job.meter.done()
	if told := job.tell(s, c.JSON); err == nil && told != nil {
		return told
	}
	if err == nil && p.seen().refusals() > 0 {
		return errTold
	}
	return err
}

// parseSpeed reads 1x, 10x, 0.5x or max, which is 0.
func parseSpeed(s string) (float64, error) {
	if s == "max" {
		return 0, nil
	}
	f, err := strconv.ParseFloat(strings.TrimSuffix(s, "x"), 64)
	if err != nil || !(f > 0) || f > 1e6 {
		return 0, fmt.Errorf("--speed %s: write 1x, 10x or max", s)
	}
	return f, nil
}

// publishJob is one file on its way.
type publishJob struct {
	cmd   *publishCmd
	rows  *tracks.Reader
	pub   *publisher
	meter *meter
	speed float64 // 0: as fast as it goes

	start   time.Time
	firstTS int64
	read    int
	bad     int
	devices map[string]int // fixes of each
	payload []byte
}

// run publishes everything and waits for the acknowledgements.
func (j *publishJob) run(ctx context.Context) error {
	err := j.all(ctx)
	if err == nil {
		err = j.pub.flush(ctx)
	}
	if err == nil || ctx.Err() == nil {
		return err
	}
	// What is on its way is stored all the same: let the count be true.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	j.pub.flush(grace)
	return errors.New("interrupted; publish the file again to send the rest: what is there is not taken twice")
}

func (j *publishJob) all(ctx context.Context) error {
	for {
		row, err := j.rows.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = badDevice(row, j.cmd.File)
		}
		if err != nil {
			if _, isRow := errors.AsType[*tracks.RowError](err); !isRow || !j.cmd.SkipBad {
				return fmt.Errorf("%w (the rows above it are published; --skip-bad passes over such rows)", err)
			}
			j.bad++
			continue
		}
		if err := j.pace(ctx, row.Fix.TS); err != nil {
			return err
		}
		j.read++
		j.devices[row.Fix.Device]++
		subject := strings.ReplaceAll(j.cmd.Subject, "{device}", row.Fix.Device)
		id := row.Fix.Device + ":" + string(row.TS)
		if err := j.pub.publish(ctx, subject, id, appendLocation(j.payload[:0], row)); err != nil {
			return err
		}
		j.meter.at(j.read)
	}
}

// badDevice refuses ids that can't be part of a subject.
func badDevice(row *tracks.Row, file string) error {
	d := row.Fix.Device
	if !strings.ContainsAny(d, " \t\r\n*>") && !strings.Contains("."+d+".", "..") {
		return nil
	}
	return &tracks.RowError{File: file, Line: row.Line, Msg: fmt.Sprintf("device %q can't be part of a NATS subject: no white space, no * and >, no empty parts between dots", d)}
}

// pace waits until a fix is due.
func (j *publishJob) pace(ctx context.Context, ts int64) error {
	if j.speed == 0 {
		return ctx.Err()
	}
	if j.read == 0 {
		j.firstTS = ts
	}
	due := j.start.Add(time.Duration(float64(ts-j.firstTS) / j.speed * float64(time.Millisecond)))
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// appendLocation is the fix as a location payload.
func appendLocation(b []byte, row *tracks.Row) []byte {
	f := &row.Fix
	b = append(b, `{"lat":`...)
	b = strconv.AppendFloat(b, f.Lat, 'f', -1, 64)
	b = append(b, `,"lon":`...)
	b = strconv.AppendFloat(b, f.Lon, 'f', -1, 64)
	b = append(b, `,"ts":`...)
	b = strconv.AppendInt(b, f.TS, 10)
	for _, o := range []struct {
		has geofence.Fields
		key string
		v   float64
	}{
		{geofence.HasAccuracy, `,"accuracy":`, f.Accuracy}, {geofence.HasSpeed, `,"speed":`, f.Speed},
		{geofence.HasHeading, `,"heading":`, f.Heading}, {geofence.HasAlt, `,"alt":`, f.Alt},
	} {
		if f.Has&o.has != 0 {
			b = append(b, o.key...)
			b = strconv.AppendFloat(b, o.v, 'f', -1, 64)
		}
	}
	if len(f.Props) > 0 {
		b = append(b, `,"props":`...)
		b = append(b, f.Props...)
	}
	return append(b, '}')
}

// tell prints what was done, also after an error: so much is stored.
func (j *publishJob) tell(s streams, asJSON bool) error {
	if !asJSON {
		j.summary(s.out)
		return nil
	}
	c := j.pub.seen()
	raw, err := json.Marshal(struct {
		Published  int            `json:"published"`
		Devices    int            `json:"devices"`
		Seconds    float64        `json:"seconds"`
		Duplicates int            `json:"duplicates"`
		Refused    map[string]int `json:"refused"`
		BadRows    int            `json:"bad_rows"`
		Again      int            `json:"sent_again"`
		Overtaken  int            `json:"overtaken"`
	}{c.acked, len(j.devices), time.Since(j.start).Seconds(), c.duplicates, c.refused, j.bad, c.again, c.overtaken})
	return orJSON(s, raw, err)
}

func (j *publishJob) summary(out io.Writer) {
	took, c := time.Since(j.start), j.pub.seen()
	fmt.Fprintf(out, "published %s fixes of %s in %s", thousands(c.acked), plural(len(j.devices), "device"), took.Round(time.Millisecond))
	if j.speed == 0 && took > 0 {
		fmt.Fprintf(out, " (%s/s)", thousands(int(float64(c.acked)/took.Seconds())))
	}
	fmt.Fprintf(out, ", %s of them already there", thousands(c.duplicates))
	for _, reason := range slices.Sorted(maps.Keys(c.refused)) {
		fmt.Fprintf(out, ", %s refused (%s)", thousands(c.refused[reason]), reason)
	}
	for _, x := range []struct {
		n     int
		words string
	}{{j.bad, "passed over, no fixes"}, {c.again, "sent again"}, {c.overtaken, "stored after a later one of their device"}} {
		if x.n > 0 {
			fmt.Fprintf(out, ", %s %s", thousands(x.n), x.words)
		}
	}
	fmt.Fprintln(out)
}
