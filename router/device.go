package router

import (
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tripline/tripline/geofence"
)

// device is what a partition keeps beside the tracker: how far the device's
// presence is saved, and the last sequence that it has used.
type device struct {
	name string

	// Owned by the partition's loop. What each fix needs comes first.

	known   geofence.Handle
	fix     uint64 // position of its newest accepted or buffered fix
	stored  int64  // when that was stored, unix milliseconds
	last    uint64 // position of its newest change
	first   uint64 // no saved presence contains the changes from here on; 0: all are saved
	pos     uint64 // position and next ordinal of its sequence
	ord     uint32
	since   time.Time
	heapIdx int
	turn    *claim // its claim of the turn under way
	unsaved int    // claims whose presence is not saved yet
	gone    bool   // removed from the table

	// Guarded by ledger.mu.

	head, tail *claim // its claims, in order
	forgotten  bool   // nothing more of it is saved
}

// place takes the device's next sequence at a position. It rises whatever the
// position is: transitions that no message caused (a fence change, at start
// most of all) go behind what the device has had so far.
func (d *device) place(pos uint64) (uint64, uint32) {
	if pos > d.pos {
		d.pos, d.ord = pos, 0
	}
	ord := d.ord
	d.ord++
	return d.pos, ord
}

// presenceFormat is the version of the encoding below.
const presenceFormat = 1

// appendPlace begins an encoded presence with the device's place, so that a
// restart goes on behind the sequences that consumers have seen. The
// tracker's own encoding follows.
func (d *device) appendPlace(dst []byte) []byte {
	dst = append(dst, presenceFormat)
	dst = binary.AppendUvarint(dst, d.pos)
	return binary.AppendUvarint(dst, uint64(d.ord))
}

// readPlace undoes appendPlace and returns the rest.
func (d *device) readPlace(enc []byte) ([]byte, error) {
	if len(enc) == 0 {
		return nil, errors.New("empty presence")
	}
	if enc[0] != presenceFormat {
		return nil, fmt.Errorf("presence has format %d, this version of Tripline reads format %d: start the version that wrote it", enc[0], presenceFormat)
	}
	enc = enc[1:]
	pos, n := binary.Uvarint(enc)
	if n <= 0 {
		return nil, errors.New("presence is cut short")
	}
	enc = enc[n:]
	ord, n := binary.Uvarint(enc)
	if n <= 0 || ord > 1<<32-1 {
		return nil, errors.New("presence is cut short")
	}
	d.pos, d.ord = pos, uint32(ord)
	return enc[n:], nil
}

// unsavedDevices orders the devices with unsaved changes by the position of
// the oldest: the first one bounds where a restart must read from.
type unsavedDevices []*device

var _ heap.Interface = (*unsavedDevices)(nil)

func (h unsavedDevices) Len() int           { return len(h) }
func (h unsavedDevices) Less(i, j int) bool { return h[i].first < h[j].first }
func (h unsavedDevices) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIdx, h[j].heapIdx = i, j
}

// Push and Pop are for package heap.
func (h *unsavedDevices) Push(x any) {
	d := x.(*device)
	d.heapIdx = len(*h)
	*h = append(*h, d)
}

func (h *unsavedDevices) Pop() any {
	old := *h
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return d
}

// devices is a partition's table of devices.
type devices struct {
	byName  map[string]*device
	unsaved unsavedDevices
	// flush holds the devices in the order in which they got their first
	// unsaved change. Entries of devices that have been saved since are
	// stale, and dropped when their turn comes.
	flush     []flushEntry
	flushHead int
}

type flushEntry struct {
	dev   *device
	since time.Time
}

func newDevices() *devices { return &devices{byName: make(map[string]*device)} }

// get returns the device, new if need be. name may lie in a buffer that is
// used again; it is copied if it is kept.
func (ds *devices) get(name string) *device {
	if d := ds.byName[name]; d != nil {
		return d
	}
	d := &device{name: string(append([]byte(nil), name...))}
	ds.byName[d.name] = d
	return d
}

// changed notes a change at pos that no saved presence contains. A restart
// must read from position from on to see it again. A transition needs no such
// note: its claim holds the offset, and with it the replay, until a presence
// that contains it is saved.
func (ds *devices) changed(d *device, pos, from uint64, now time.Time) {
	d.last = max(d.last, pos)
	if d.first == 0 {
		d.first = max(from, 1)
		heap.Push(&ds.unsaved, d)
		ds.enqueue(d, now)
	}
}

func (ds *devices) enqueue(d *device, now time.Time) {
	d.since = now
	ds.flush = append(ds.flush, flushEntry{d, now})
}

// saved notes that a durable presence contains all changes up to contained,
// and n claims.
func (ds *devices) saved(d *device, contained uint64, n int, now time.Time) {
	if d.gone {
		return
	}
	d.unsaved -= n
	if d.first == 0 {
		return
	}
	if d.last <= contained {
		ds.clean(d)
		return
	}
	if contained+1 > d.first {
		d.first = contained + 1
		heap.Fix(&ds.unsaved, d.heapIdx)
	}
	ds.enqueue(d, now)
}

func (ds *devices) clean(d *device) {
	if d.first != 0 {
		heap.Remove(&ds.unsaved, d.heapIdx)
		d.first = 0
	}
}

// remove drops a device from the table.
func (ds *devices) remove(d *device) {
	ds.clean(d)
	d.gone = true
	delete(ds.byName, d.name)
}

// floor is the position of the oldest change that is not saved, or next if
// there is none.
func (ds *devices) floor(next uint64) uint64 {
	if len(ds.unsaved) == 0 {
		return next
	}
	return min(ds.unsaved[0].first, next)
}

// due takes the next device whose oldest unsaved change is older than before;
// nil if there is none. Devices with claims are left out: a later presence
// must not be saved before those are settled, and then it comes again.
func (ds *devices) due(before time.Time) *device {
	for ds.flushHead < len(ds.flush) {
		e := ds.flush[ds.flushHead]
		stale := e.dev.gone || e.dev.first == 0 || !e.dev.since.Equal(e.since)
		if !stale && e.since.After(before) {
			return nil
		}
		ds.flush[ds.flushHead] = flushEntry{}
		ds.flushHead++
		ds.compact()
		if !stale && e.dev.unsaved == 0 {
			return e.dev
		}
	}
	return nil
}

// compact moves the queue to the front of its array once half of it is used
// up, so that it stays as long as the devices are many.
func (ds *devices) compact() {
	if ds.flushHead < 1024 || ds.flushHead*2 < len(ds.flush) {
		return
	}
	n := copy(ds.flush, ds.flush[ds.flushHead:])
	clear(ds.flush[n:])
	ds.flush, ds.flushHead = ds.flush[:n], 0
}
