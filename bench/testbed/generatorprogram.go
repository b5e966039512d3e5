package testbed

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// paceInstructions drop a frame that is not due, and count one that is. They leave the context in R6
// and the frame's number in R8.
func paceInstructions(state *ebpf.Map) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, -4, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, state.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreMem(asm.R7, runsAt, asm.R1, asm.DWord),
		asm.FnKtimeGetNs.Call(),
		asm.LoadMem(asm.R1, asm.R7, endAt, asm.DWord),
		asm.JGE.Reg(asm.R0, asm.R1, "drop"),
		asm.LoadMem(asm.R1, asm.R7, intervalAt, asm.DWord),
		asm.LoadMem(asm.R2, asm.R7, dueAt, asm.DWord),
		asm.JGT.Reg(asm.R2, asm.R0, "drop"),
		asm.Sub.Imm(asm.R0, int32(burstTime)),
		asm.JGE.Reg(asm.R2, asm.R0, "due"), // frames that are due for longer are left out
		asm.Mov.Reg(asm.R2, asm.R0),
		asm.Add.Reg(asm.R2, asm.R1).WithSymbol("due"),
		asm.StoreMem(asm.R7, dueAt, asm.R2, asm.DWord),
		asm.LoadMem(asm.R8, asm.R7, sentAt, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R7, sentAt, asm.R1, asm.DWord),
	}
}

// redirectInstructions send the frame out of a link.
func redirectInstructions(link int) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R1, int32(link)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
	}
}

// loadGenerator loads an XDP program.
func loadGenerator(program asm.Instructions) (*ebpf.Program, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "antrail_source", Type: ebpf.XDP, License: "Apache-2.0", Instructions: program})
	if err != nil {
		return nil, fmt.Errorf("generator: %w", err)
	}
	return p, nil
}

// SendFrame sends one frame out of a link of the calling thread's namespace.
func SendFrame(link int, frame []byte) error {
	p, err := loadGenerator(redirectInstructions(link))
	if err != nil {
		return err
	}
	defer p.Close()
	_, err = p.Run(&ebpf.RunOptions{Data: frame, Repeat: 1, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES})
	return err
}
