package main

import "syscall"

// orphanAttr makes a child end with us, whatever ends us.
func orphanAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
