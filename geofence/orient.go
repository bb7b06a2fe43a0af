package geofence

import "math"

// orientBound is the relative error of orient's plain evaluation: three
// roundings, after Shewchuk's analysis.
const orientBound = (3 + 16*0x1p-53) * 0x1p-53

// orient says on which side of the line from a to b the point c lies:
// positive for the left, negative for the right, 0 for exactly on it. The
// sign is exact for all finite inputs, which is what makes edges and vertices
// that two fences share deterministic.
func orient(a, b, c point) float64 {
	// The conversions forbid fused multiply-adds, which the bound excludes.
	l := float64((a.x - c.x) * (b.y - c.y))
	r := float64((a.y - c.y) * (b.x - c.x))
	det := l - r
	if bound := orientBound * (math.Abs(l) + math.Abs(r)); det > bound || -det > bound {
		return det
	}
	return orientExact(a, b, c)
}

// orientExact evaluates the determinant without rounding, as a sum of twelve
// floats. It is called only for points within rounding of the line.
func orientExact(a, b, c point) float64 {
	if a == c || b == c {
		return 0
	}
	var sum expansion
	sum.addProduct(a.x, b.y)
	sum.addProduct(-a.x, c.y)
	sum.addProduct(-c.x, b.y)
	sum.addProduct(-a.y, b.x)
	sum.addProduct(a.y, c.x)
	sum.addProduct(c.y, b.x)
	return sum.sign()
}

// expansion is an exact sum of floats that don't overlap, smallest first.
type expansion struct {
	terms [12]float64
	n     int
}

// addProduct adds x*y exactly: the product and its rounding error.
func (e *expansion) addProduct(x, y float64) {
	p := float64(x * y)
	e.add(math.FMA(x, y, -p))
	e.add(p)
}

func (e *expansion) add(x float64) {
	for i := range e.n {
		t := e.terms[i]
		s := x + t
		back := s - x
		e.terms[i] = (x - (s - back)) + (t - back)
		x = s
	}
	e.terms[e.n] = x
	e.n++
}

func (e *expansion) sign() float64 {
	for i := e.n - 1; i >= 0; i-- {
		if e.terms[i] != 0 {
			return e.terms[i]
		}
	}
	return 0
}
