package app

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/tripline/tripline/geofence"
)

// shownDevice is what is known of a device.
type shownDevice struct {
	Device    string       `json:"device"`
	Partition int          `json:"partition"`
	Newest    shownFix     `json:"newest"`
	Inside    []insideStay `json:"inside"`
	// Silent: it has been told silent since its newest fix.
	Silent bool `json:"silent"`
}

// shownFix is a position, with what the device said besides.
type shownFix struct {
	Lat      float64         `json:"lat"`
	Lon      float64         `json:"lon"`
	TS       time.Time       `json:"ts"`
	Stored   time.Time       `json:"stored"`
	Accuracy *float64        `json:"accuracy,omitempty"`
	Speed    *float64        `json:"speed,omitempty"`
	Heading  *float64        `json:"heading,omitempty"`
	Alt      *float64        `json:"alt,omitempty"`
	Props    json.RawMessage `json:"props,omitempty"`
}

// insideStay is a fence that a device is in.
type insideStay struct {
	Fence     string    `json:"fence"`
	Name      string    `json:"name,omitempty"`
	EnteredAt time.Time `json:"entered_at"`
}

// deviceAPI registers what concerns single devices.
func (s *service) deviceAPI(mux *http.ServeMux) {
	mux.Handle("GET /api/v1/devices/{id}", apiFunc(s.getDevice))
	mux.Handle("DELETE /api/v1/devices/{id}", longFunc(s.deleteDevice))
}

func (s *service) getDevice(r *http.Request) (any, error) {
	id := r.PathValue("id")
	if err := s.runsHere(id); err != nil {
		return nil, err
	}
	for number, p := range s.held.each() {
		var shown *shownDevice
		err := p.Do(r.Context(), func(t *geofence.Tracker) {
			if presence, ok := t.Presence(id); ok {
				shown = showDevice(number, &presence)
			}
		})
		if err != nil {
			return nil, err
		}
		if shown != nil {
			return shown, nil
		}
	}
	return nil, failf(http.StatusNotFound, "no device %q: it has sent nothing, or was forgotten", id)
}

// showDevice copies what it shows: a presence is only valid during a call.
func showDevice(partition int, p *geofence.Presence) *shownDevice {
	d := &shownDevice{Device: p.Device, Partition: partition, Newest: showFix(&p.Newest), Silent: p.Silent, Inside: []insideStay{}}
	for _, stay := range p.Stays {
		d.Inside = append(d.Inside, insideStay{stay.Fence.ID, stay.Fence.Name, time.UnixMilli(stay.EnteredAt).UTC()})
	}
	return d
}

func showFix(f *geofence.Fix) shownFix {
	shown := shownFix{
		Lat: f.Lat, Lon: f.Lon, TS: time.UnixMilli(f.TS).UTC(), Stored: time.UnixMilli(f.Stored).UTC(),
		Props: bytes.Clone(f.Props),
	}
	for _, field := range []struct {
		has   geofence.Fields
		value float64
		to    **float64
	}{
		{geofence.HasAccuracy, f.Accuracy, &shown.Accuracy}, {geofence.HasSpeed, f.Speed, &shown.Speed},
		{geofence.HasHeading, f.Heading, &shown.Heading}, {geofence.HasAlt, f.Alt, &shown.Alt},
	} {
		if f.Has&field.has != 0 {
			*field.to = &field.value
		}
	}
	return shown
}

func (s *service) deleteDevice(r *http.Request) (any, error) {
	return s.forget(r.Context(), r.PathValue("id"))
}
