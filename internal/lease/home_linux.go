package lease

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// ThisHome returns the home of this process. Its host is this boot of the
// kernel, and the process's namespace of process ids: containers on one
// machine are different hosts.
func ThisHome() Home {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Home{}
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Home{}
	}
	return Home{Host: strings.TrimSpace(string(boot)) + " " + space, PID: os.Getpid()}
}

// exists says whether there is a process of that id, as far as can be told.
// One that has ended and waits for its parent to notice does not count.
func exists(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
