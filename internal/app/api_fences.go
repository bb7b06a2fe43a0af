package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tripline/tripline/geofence"
)

// feature is a fence as the API shows it: GeoJSON, and where it comes from.
func (s *service) feature(f *geofence.Fence) (json.RawMessage, error) {
	data, err := f.MarshalFeature()
	if err != nil {
		return nil, err
	}
	var feature map[string]json.RawMessage
	if err := json.Unmarshal(data, &feature); err != nil {
		return nil, err
	}
	properties := map[string]any{}
	if err := json.Unmarshal(feature["properties"], &properties); err != nil {
		return nil, err
	}
	properties["source"] = "kv"
	if s.fences.fromFile(f.ID) {
		properties["source"] = "file"
	}
	if feature["properties"], err = json.Marshal(properties); err != nil {
		return nil, err
	}
	return json.Marshal(feature)
}

func (s *service) getFences(*http.Request) (any, error) {
	features := []json.RawMessage{}
	for f := range s.index.Snapshot().All() {
		feature, err := s.feature(f)
		if err != nil {
			return nil, fmt.Errorf("fence %q: %w", f.ID, err)
		}
		features = append(features, feature)
	}
	return map[string]any{"type": "FeatureCollection", "features": features}, nil
}

func (s *service) fence(r *http.Request) (*geofence.Fence, error) {
	id := r.PathValue("id")
	f := s.index.Snapshot().Fence(id)
	if f == nil {
		return nil, failf(http.StatusNotFound, "no fence %q", id)
	}
	return f, nil
}

func (s *service) getFence(r *http.Request) (any, error) {
	f, err := s.fence(r)
	if err != nil {
		return nil, err
	}
	return s.feature(f)
}

func (s *service) putFence(r *http.Request) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, statusError{http.StatusRequestEntityTooLarge, err}
	}
	f, err := s.fences.put(r.Context(), r.PathValue("id"), body)
	if err != nil {
		return nil, fenceError(err)
	}
	return s.feature(f)
}

func (s *service) deleteFence(r *http.Request) (any, error) {
	if err := s.fences.remove(r.Context(), r.PathValue("id")); err != nil {
		return nil, fenceError(err)
	}
	return done, nil
}

// fenceError gives an error the status that it means.
func fenceError(err error) error {
	_, invalid := errors.AsType[invalidFence](err)
	switch {
	case invalid:
		return statusError{http.StatusBadRequest, err}
	case errors.Is(err, errFromFile), errors.Is(err, errNoBucket):
		return statusError{http.StatusConflict, err}
	case errors.Is(err, errNoFence):
		return statusError{http.StatusNotFound, err}
	}
	return err
}

// insideDevice is a device inside a fence.
type insideDevice struct {
	Device    string    `json:"device"`
	EnteredAt time.Time `json:"entered_at"`
	Lat       float64   `json:"lat"`
	Lon       float64   `json:"lon"`
}

func (s *service) getInside(r *http.Request) (any, error) {
	f, err := s.fence(r)
	if err != nil {
		return nil, err
	}
	inside := []insideDevice{}
	for _, p := range s.held.each() {
		err := p.Do(r.Context(), func(t *geofence.Tracker) {
			for name := range t.Inside(f.ID) {
				inside = append(inside, describeInside(t, name, f.ID))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return map[string]any{"devices": inside}, nil
}

func describeInside(t *geofence.Tracker, device, fence string) insideDevice {
	d := insideDevice{Device: device}
	presence, ok := t.Presence(device)
	if !ok {
		return d
	}
	d.Lat, d.Lon = presence.Newest.Lat, presence.Newest.Lon
	for _, stay := range presence.Stays {
		if stay.Fence.ID == fence {
			d.EnteredAt = time.UnixMilli(stay.EnteredAt).UTC()
		}
	}
	return d
}
