package breaker

// aliveAfter is how many reopenings in a row, all of whose probes answered
// well but too slowly, make a consumer "alive but slow".
const aliveAfter = 3

// probing keeps the probes of all generations and the progress of the newest
// half-open one.
type probing struct {
	inFlight  int // holding a place, whatever their generation
	successes int // consecutive healthy ones of this half-open generation

	mark     uint64 // generation bits of the newest half-open generation's permits
	waiting  int    // its probes that have not answered
	answered int    // its probes that answered OK
	bad      bool   // a probe of it did not
	ended    bool   // it ended in a reopening
	slowRow  int    // generations in a row that were alive but slow
}

// start begins a half-open generation.
func (p *probing) start(generation uint64) {
	if p.ended { // some answer of the one before is still out
		p.slowRow = 0
	}
	mark := generation << generationShift & generationMask
	*p = probing{inFlight: p.inFlight, slowRow: p.slowRow, mark: mark}
}

// begin takes a place.
func (p *probing) begin() {
	p.inFlight++
	p.waiting++
}

// giveBack frees the place of a probe that says nothing. w is its word.
func (p *probing) giveBack(w uint64) {
	p.inFlight--
	if w&generationMask == p.mark {
		p.waiting--
		p.weigh()
	}
}

// answer frees the place of a probe that has answered, or never will.
func (p *probing) answer(w uint64, ok bool) {
	p.inFlight--
	if w&generationMask != p.mark {
		return
	}
	p.waiting--
	if ok {
		p.answered++
	} else {
		p.bad = true
	}
	p.weigh()
}

// reopened notes that the generation has failed.
func (p *probing) reopened() {
	p.ended = true
	p.weigh()
}

// weigh decides, once its last probe has answered, whether a failed
// generation was alive but slow. That decides nothing but what is shown.
func (p *probing) weigh() {
	if !p.ended || p.waiting > 0 {
		return
	}
	p.ended = false
	if p.bad || p.answered == 0 {
		p.slowRow = 0
	} else {
		p.slowRow++
	}
}
