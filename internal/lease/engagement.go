package lease

// engagement is a partition that is being served.
type engagement struct {
	handOver, lost chan struct{}
	asked, stopped bool // which of them are closed
}

// start serves partitions that are ours.
func (k *Keeper) start(partitions []int) {
	var gained []int
	for _, p := range partitions {
		if k.startOne(p) {
			gained = append(gained, p)
		}
	}
	tell(k.cfg.Hooks.Gained, gained)
}

// startOne says whether the partition was not served before.
func (k *Keeper) startOne(p int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stays[p] != nil {
		return false
	}
	s := &engagement{handOver: make(chan struct{}), lost: make(chan struct{})}
	k.stays[p] = s
	k.core.started(p)
	k.holds[p].Store(true)
	k.work.Go(func() {
		err := k.cfg.Serve(Stay{Partition: p, HandOver: s.handOver, Lost: s.lost})
		k.holds[p].Store(false)
		k.ended <- ended{p, s, err}
	})
	return true
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

// lose has partitions stop at once.
func (k *Keeper) lose(partitions []int) {
	var lost []int
	for _, p := range partitions {
		if k.loseOne(p) {
			lost = append(lost, p)
		}
	}
	tell(k.cfg.Hooks.Lost, lost)
}

// loseOne says whether the partition was served until now.
func (k *Keeper) loseOne(p int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.stays[p]
	if s == nil || s.stopped {
		return false
	}
	k.holds[p].Store(false)
	s.stopped = true
	close(s.lost)
	return true
}

func (k *Keeper) loseAll() {
	all := make([]int, len(k.holds))
	for p := range all {
		all[p] = p
	}
	k.lose(all)
}

// expire gives everything up: our leases have ended.
func (k *Keeper) expire() {
	if k.serving() && k.cfg.Hooks.Expired != nil {
		k.cfg.Hooks.Expired()
	}
	k.loseAll()
}
