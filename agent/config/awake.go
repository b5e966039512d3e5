package config

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/switchd/local"
)

// The values of Config.KeepAwake: whether idle processors stay awake while pods talk through
// the switch, or during garbage collection (dataplane/workerawake.go).
const (
	KeepAwakeAuto = "auto" // on for a Node of few processors
	KeepAwakeOn   = "on"
	KeepAwakeOff  = "off"
)

// fewProcessors is the largest number of processors for which auto is on. All processors then
// poll, and each takes power from those that work.
const fewProcessors = 4

// KnownKeepAwake says whether s is a value of keepAwake.
func KnownKeepAwake(s string) bool {
	return s == KeepAwakeAuto || s == KeepAwakeOn || s == KeepAwakeOff
}

// KeepsAwake says what a value of keepAwake means on this machine: nil if idle processors stay
// awake, otherwise why they do not.
func KeepsAwake(word string) error {
	if word == KeepAwakeOff {
		return errors.New("keepAwake is off")
	}
	if n := processors(); word == KeepAwakeAuto && (n == 0 || n > fewProcessors) {
		return fmt.Errorf("keepAwake is auto, and the machine has %d processors, more than %d", n, fewProcessors)
	}
	request, err := ports.OpenAwake()
	if err == nil {
		err = request.Close()
	}
	if err != nil {
		return fmt.Errorf("%w; keepAwake needs root, and privileged: true in a container", err)
	}
	return nil
}

// KeepsAwake says whether idle processors stay awake, and logs it. If the kernel cannot
// do it, pods that talk wait for processors to wake up.
func (c *Config) KeepsAwake(log *slog.Logger) bool {
	err := KeepsAwake(c.KeepAwake)
	switch {
	case err == nil:
		log.Info("idle processors are kept awake while pods talk", "keepAwake", c.KeepAwake)
	case c.KeepAwake == KeepAwakeOn:
		log.Warn("idle processors sleep while pods talk", "reason", err)
	default: // nobody asked for on
		log.Info("idle processors sleep while pods talk", "reason", err)
	}
	return err == nil
}

// processors is how many processors the machine has, including those that the agent may not
// use; 0 if unknown.
func processors() int {
	list, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*") // the pattern is well formed
	return len(list)
}

// What Config.Offload may be.
const (
	OffloadAuto = local.OffloadAuto
	OffloadOff  = local.OffloadOff
)
