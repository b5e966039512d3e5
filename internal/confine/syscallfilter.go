//go:build linux && (amd64 || arm64)

package confine

import "golang.org/x/sys/unix"

// A rule allows a system call if all its conditions hold. Two rules of one call are
// alternatives.
type rule struct {
	call  uint32
	where []condition
}

// A condition holds if an argument's lower 32 bits, masked, are one of the values. The
// kernel reads no more than these of each argument that the list examines.
type condition struct {
	arg    uint32
	mask   uint32
	values []uint32
}

// Offsets in struct seccomp_data (seccomp(2)). Both machines are little-endian.
const (
	atCall    = 0
	atMachine = 4
	atArgs    = 16
)

// refused is EPERM, not the end of the process. A call that the list lacks is a fault
// in one feature; killing the process would stop the packets of all pods. The kernel
// logs the refusal. Calls of another ABI are no oversight: they end the process.
const refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)

// unknown is what clone3 gets: the filter cannot read its flags, which lie in memory.
// The C library then makes threads by clone, as on kernels without clone3.
const unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func result(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

// equal skips yes or no instructions.
func equal(k uint32, yes, no int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: uint8(yes), Jf: uint8(no)}
}

// compile makes the filter. Kernels since 5.11 remember the calls that are allowed
// whatever their arguments are, and do not run the filter for them.
func compile(rules []rule) []unix.SockFilter {
	code := []unix.SockFilter{
		load(atMachine), equal(machine, 1, 0), result(unix.SECCOMP_RET_KILL_PROCESS),
		load(atCall),
		// x32 calls have this bit; no call of arm64 has it.
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: 1 << 30, Jf: 1}, result(unix.SECCOMP_RET_KILL_PROCESS),
	}
	for _, r := range rules {
		body := r.body()
		code = append(code, equal(r.call, 0, len(body)))
		code = append(code, body...)
	}
	return append(code, equal(unix.SYS_CLONE3, 0, 1), result(unknown), result(refused))
}

// body decides about one call: it allows it, or leaves the call's number loaded again
// for the rules below.
func (r rule) body() []unix.SockFilter {
	code := []unix.SockFilter{result(unix.SECCOMP_RET_ALLOW)}
	if len(r.where) == 0 {
		return code
	}
	code = append(code, load(atCall))
	for i := len(r.where) - 1; i >= 0; i-- {
		code = append(r.where[i].test(len(code)-1), code...)
	}
	return code
}

// test falls through if the condition holds, and otherwise skips further instructions.
func (c condition) test(further int) []unix.SockFilter {
	code := []unix.SockFilter{load(atArgs + 8*c.arg), {Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask}}
	for i, v := range c.values {
		left := len(c.values) - 1 - i
		no := 0
		if left == 0 {
			no = further
		}
		code = append(code, equal(v, left, no))
	}
	return code
}
