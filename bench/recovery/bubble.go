package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
)

// The peers can't be told the time: they read the clock. A testing/synctest
// bubble has a clock that moves when all in it sleep, but only a test can open
// one. So the command runs itself once more, as a test binary with the one
// test that plays the peers, and reads what that wrote.

// startPeers starts the peers' runs in a process of their own. The function
// that it returns waits for them.
func startPeers(seeds int) (func() (*Result, error), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program to run the peers: %w", err)
	}
	dir, err := os.MkdirTemp("", "recovery")
	if err != nil {
		return nil, fmt.Errorf("making a place for the peers' figures: %w", err)
	}
	file := filepath.Join(dir, "peers.json")
	cmd := exec.Command(self, "-child", file, "-seeds", strconv.Itoa(seeds))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the peers' runs: %w", err)
	}
	return func() (*Result, error) {
		defer os.RemoveAll(dir)
		if err := cmd.Wait(); err != nil {
			return nil, fmt.Errorf("running the peers: %w", err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the peers' figures: %w", err)
		}
		res := new(Result)
		if err := json.Unmarshal(data, res); err != nil {
			return nil, fmt.Errorf("reading the peers' figures: %w", err)
		}
		return res, nil
	}, nil
}

// playPeers is the whole of the other process. It exits.
func playPeers(file string, seeds int) {
	os.Args = os.Args[:1] // what follows is for the testing package
	test := testing.InternalTest{Name: "peers", F: func(t *testing.T) {
		res := studyPeers(t, scenarios(), seeds)
		data, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}}
	match := func(string, string) (bool, error) { return true, nil }
	testing.Main(match, []testing.InternalTest{test}, nil, nil)
}

// studyPeers plays the scenarios with the peers, each run in a bubble.
func studyPeers(t *testing.T, all []*scenario, seeds int) *Result {
	ds := only(disciplines())
	res := blank(all, ds, seeds)
	t.Run("all", func(t *testing.T) {
		for i, sc := range all {
			for j, d := range ds {
				t.Run(sc.name+" "+d.name, func(t *testing.T) {
					t.Parallel()
					var runs []*tally
					for seed := range seeds {
						synctest.Test(t, func(*testing.T) {
							runs = append(runs, run(sc, d, uint64(seed), newArrivals(uint64(seed)), nil))
						})
					}
					res.Scenarios[i].Policies[j] = sumUp(sc, d.name, runs)
				})
			}
		}
	})
	return res
}
