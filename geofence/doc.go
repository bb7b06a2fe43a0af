// Package geofence matches the positions of moving devices against named
// areas and tells what changed: a device entered a fence, left it, stayed for
// a while, or passed through.
//
// It is pure: no clock, no goroutine, no I/O, no log. The caller passes the
// time, so the same input gives the same output, live, replayed or in a test.
//
// An [Index] holds the fences and is safe for any number of readers beside
// one writer. A [Tracker] holds what is known of the devices and belongs to
// one goroutine.
//
// # Fences
//
// [ParseFences] reads GeoJSON. A Polygon or a MultiPolygon is a fence as it
// is; a Point with the property radius_m is a circle, a LineString with it a
// corridor. Further properties are rules of the fence, which go before those
// of the [Config]:
//
//	exit_buffer_m   leave only when farther away than this, metres
//	confirm         so many consecutive fixes have to agree
//	dwell           durations: ["5m", "1h"], or seconds
//	max_accuracy_m  judge only by fixes at least so accurate, metres
//	min_alt_m       the altitude band, metres; either may stand alone
//	max_alt_m
//	active          {"zone": "Europe/Berlin", "days": ["mon-fri"], "hours": ["07:00-19:00"]},
//	                or a list of such; hours past midnight belong to the day they begin on
//
// Edges of polygons and corridors are straight in longitude and latitude
// (RFC 7946); one that is longer than 180 degrees of longitude goes the other
// way, over the antimeridian. One of exactly 360 is the same meridian, or,
// where that leaves no area, all of the parallel. A ring around the earth
// holds the pole on its side of the equator. Distances are great-circle
// distances on a sphere of 6,371,008.8 m. The boundary is inside, exactly: a
// point on an edge that two polygons share is in both, a hole's edge is
// inside, and a ring in a hole is an island.
//
// A boundary that crosses itself is refused, but where it cuts off less than
// a millionth of its area: published boundaries have such slips. Rings may
// touch and run along themselves and one another, as bridges to holes do.
//
// # Judging
//
// A device's fixes are judged in order of their own timestamps, which
// strictly rise: an older fix is [Late] and changes nothing. A fix with no
// altitude can't enter or leave a fence by its band, and one that is less
// accurate than a fence demands says nothing about that fence; both leave it
// as it was. A fence that is not active has nobody inside: who is there when
// its hours end exits at that time, and who is there when they begin enters
// with the next fix.
//
// A device's clock is the timestamp of its newest fix plus the time that has
// passed since that fix was stored. Timers go by it, so that replayed history
// and skewed clocks work, and a device that sends nothing more still dwells.
//
// Where a fence asks that two or more fixes agree, there is no cross of it: a
// cross rests on no fix inside at all.
package geofence
