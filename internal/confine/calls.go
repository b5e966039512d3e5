//go:build linux && (amd64 || arm64)

package confine

import (
	"slices"

	"golang.org/x/sys/unix"
)

// The list, by purpose. All other calls fail with EPERM: among others execve, ptrace,
// process_vm_readv, mount, setns, unshare, io_uring and the loading of programs.
var (
	memory = []uint32{unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_MSYNC, unix.SYS_BRK, unix.SYS_MLOCK}

	threads = []uint32{
		unix.SYS_FUTEX, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_SCHED_YIELD,
		unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_GETCPU,
	}

	signals = []uint32{unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL}

	clocks = []uint32{
		unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY,
		unix.SYS_SETITIMER, unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE, // profiles
	}

	// files need no rules about paths: the mounts and the user decide.
	files = []uint32{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64,
		unix.SYS_OPENAT, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_LSEEK, unix.SYS_GETDENTS64,
		unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCNTL, unix.SYS_DUP3,
		unix.SYS_PIPE2, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FLOCK,
		unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_FCHMOD, unix.SYS_FCHMODAT,
		unix.SYS_SENDFILE, unix.SYS_SPLICE, unix.SYS_COPY_FILE_RANGE,
	}

	waiting = []uint32{unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2, unix.SYS_PPOLL, unix.SYS_PSELECT6}

	// sockets lacks socket(2) itself, which has conditions.
	sockets = []uint32{
		unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT4, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKNAME,
		unix.SYS_GETPEERNAME, unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT, unix.SYS_SENDTO, unix.SYS_RECVFROM,
		unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SENDMMSG, unix.SYS_RECVMMSG,
	}

	self = []uint32{
		unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETPPID, unix.SYS_CAPGET,
		unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETRUSAGE, unix.SYS_GETRANDOM, unix.SYS_UMASK,
	}
)

// Conditions' values that golang.org/x/sys/unix does not name.
const (
	setVMA       = 0x53564d41 // PR_SET_VMA: the Go runtime names its memory
	kindOfSocket = 0xf        // SOCK_TYPE_MASK: the type without SOCK_CLOEXEC and SOCK_NONBLOCK
	anyBits      = ^uint32(0)
)

// allowed is the whole list, for the process with this id.
func allowed(pid uint32) []rule {
	rules := conditional(pid)
	for _, call := range slices.Concat(memory, threads, signals, clocks, files, waiting, sockets, self, ofMachine) {
		rules = append(rules, rule{call: call})
	}
	return rules
}

// conditional are the calls whose arguments matter.
func conditional(pid uint32) []rule {
	is := func(arg uint32, values ...uint32) condition { return condition{arg, anyBits, values} }
	noCode := []condition{{2, unix.PROT_EXEC, []uint32{0}}} // no memory that can be executed
	return []rule{
		{unix.SYS_MMAP, noCode},
		{unix.SYS_MPROTECT, noCode},
		{unix.SYS_CLONE, []condition{{0, unix.CLONE_THREAD, []uint32{unix.CLONE_THREAD}}}}, // threads, no processes
		{unix.SYS_TGKILL, []condition{is(0, pid)}},                                         // preemption
		{unix.SYS_KILL, []condition{is(0, pid)}},
		{unix.SYS_PRLIMIT64, []condition{is(0, 0, pid)}},
		{unix.SYS_PRCTL, []condition{is(0, setVMA, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_GET_NO_NEW_PRIVS)}},
		{unix.SYS_SOCKET, []condition{is(0, unix.AF_UNIX)}}, // the door
		{unix.SYS_SOCKET, []condition{is(0, unix.AF_INET, unix.AF_INET6), {1, kindOfSocket, []uint32{unix.SOCK_DGRAM}}, is(2, 0, unix.IPPROTO_UDP)}},
		{unix.SYS_SOCKET, []condition{is(0, unix.AF_NETLINK), is(2, unix.NETLINK_ROUTE)}}, // links and routes, to read
		{unix.SYS_SOCKETPAIR, []condition{is(0, unix.AF_UNIX)}},
		{unix.SYS_IOCTL, []condition{is(1, unix.SIOCGIFINDEX, unix.SIOCGIFFLAGS, unix.SIOCGIFNAME, unix.SIOCGIFMTU,
			unix.SIOCETHTOOL, // to read: writing takes CAP_NET_ADMIN
			unix.TUNGETIFF, unix.TUNSETOFFLOAD, unix.TCGETS)}},
		{unix.SYS_BPF, []condition{is(0, unix.BPF_MAP_LOOKUP_ELEM, unix.BPF_MAP_UPDATE_ELEM, unix.BPF_MAP_DELETE_ELEM,
			unix.BPF_MAP_GET_NEXT_KEY, unix.BPF_MAP_LOOKUP_BATCH, unix.BPF_MAP_UPDATE_BATCH, unix.BPF_MAP_DELETE_BATCH,
			unix.BPF_OBJ_GET_INFO_BY_FD, unix.BPF_LINK_UPDATE)}},
	}
}
