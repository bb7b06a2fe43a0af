package lease

// engagement is a partition that is being served.
type engagement struct {
	handOver, lost chan struct{}
	asked, stopped bool // which of them are closed
}

func (k *Keeper) start(p int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stays[p] != nil {
		return
	}
	s := &engagement{handOver: make(chan struct{}), lost: make(chan struct{})}
	k.stays[p] = s
	k.core.started(p)
	k.holds[p].Store(true)
	if k.cfg.Hooks.Gained != nil {
		k.cfg.Hooks.Gained(p)
	}
	k.work.Go(func() {
		err := k.cfg.Serve(Stay{Partition: p, HandOver: s.handOver, Lost: s.lost})
		k.holds[p].Store(false)
		k.ended <- ended{p, s, err}
	})
}

// took notes that a partition's Serve has returned.
func (k *Keeper) took(e ended) {
	k.mu.Lock()
	delete(k.stays, e.partition)
	k.mu.Unlock()
	k.core.ended(k.now(), e.partition)
	if !e.stay.asked && !e.stay.stopped && k.cfg.Hooks.Ended != nil {
		k.cfg.Hooks.Ended(e.partition, e.err)
	}
}

func (k *Keeper) serving() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.stays) > 0
}

func (k *Keeper) handOver(p int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.stays[p]; s != nil && !s.asked {
		s.asked = true
		close(s.handOver)
		k.core.asked(p)
	}
}

func (k *Keeper) handOverAll() {
	for p := range k.holds {
		k.handOver(p)
	}
}

func (k *Keeper) lose(p int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.stays[p]
	if s == nil || s.stopped {
		return
	}
	k.holds[p].Store(false)
	s.stopped = true
	close(s.lost)
	if k.cfg.Hooks.Lost != nil {
		k.cfg.Hooks.Lost(p)
	}
}

func (k *Keeper) loseAll() {
	for p := range k.holds {
		k.lose(p)
	}
}

// expire gives everything up: our leases have ended.
func (k *Keeper) expire() {
	if k.serving() && k.cfg.Hooks.Expired != nil {
		k.cfg.Hooks.Expired()
	}
	k.loseAll()
}
