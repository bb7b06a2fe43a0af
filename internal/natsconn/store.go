package natsconn

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	lockFile     = "LOCK"
	maxStoreFile = "max_store"
	// freeShare is the part of the free disk that is taken by default.
	freeShare = 0.8
)

// lock keeps a second process out of a store directory: two servers on one
// directory overwrite each other's files without a word.
type lock struct{ file *os.File }

func lockDir(dir string) (*lock, error) {
	path := filepath.Join(dir, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("nats store: %w: choose another nats.store_dir, or let this user write to it", err)
	}
	err = tryLock(file)
	switch {
	case errors.Is(err, errLocked):
		owner := make([]byte, 32)
		n, _ := file.Read(owner) // for the message only
		_ = file.Close()
		return nil, fmt.Errorf("nats store %s is in use by another process%s: stop it, or set nats.store_dir to another directory",
			dir, ownerText(string(owner[:n])))
	case err != nil:
		_ = file.Close()
		return nil, fmt.Errorf("locking the nats store %s: %w: choose a directory on a local disk", dir, err)
	}
	// Who it is helps whoever finds it locked; that it can't be written doesn't matter.
	_ = file.Truncate(0)
	_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return &lock{file: file}, nil
}

func ownerText(pid string) string {
	if pid = strings.TrimSpace(pid); pid != "" {
		return " (pid " + pid + ")"
	}
	return ""
}

// release lets the next one in; closing the file does it. The file stays: were
// it removed, two processes could each lock one of the same name.
func (l *lock) release() { _ = l.file.Close() }

// maxStore says how many bytes may be stored in dir: what is configured, else
// what was found at the first start. It must not be worked out anew at each
// start, because what is stored by then would count as taken.
func maxStore(dir string, configured int64) (int64, error) {
	if configured < 0 {
		return 0, fmt.Errorf("nats.max_store %d: give a number of bytes above 0", configured)
	}
	if configured > 0 {
		return configured, nil
	}
	path := filepath.Join(dir, maxStoreFile)
	kept, err := os.ReadFile(path)
	if err == nil {
		n, err := strconv.ParseInt(strings.TrimSpace(string(kept)), 10, 64)
		if err != nil || n <= 0 {
			return 0, fmt.Errorf("%s has to hold a number of bytes: correct it, or set nats.max_store", path)
		}
		return n, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("nats store: %w", err)
	}
	free, err := freeBytes(dir)
	if err != nil {
		return 0, fmt.Errorf("free space of %s: %w: set nats.max_store", dir, err)
	}
	n := int64(float64(free) * freeShare)
	if n < 1<<20 {
		return 0, fmt.Errorf("the disk of %s has %d bytes left: make room, or set nats.store_dir to another directory", dir, free)
	}
	if err := os.WriteFile(path, []byte(strconv.FormatInt(n, 10)+"\n"), 0o600); err != nil {
		return 0, fmt.Errorf("nats store: %w", err)
	}
	return n, nil
}
