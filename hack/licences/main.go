// Licences writes THIRD-PARTY-NOTICES. It lists the modules that antrail and antrail-cni link on
// Linux, each with its licence, and has the text of every licence and notice file. It reads the
// files from the module cache, like the build.
//
//	go run ./hack/licences [-check] THIRD-PARTY-NOTICES
//
// With -check it compares the file and writes nothing. A licence that is not in the list of
// allowed ones is refused. Exit codes: 0 done, 1 refused or stale, 3 a module is not in the cache
// and cannot be fetched.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
)

// Exit codes.
const (
	exitRefused     = 1
	exitUnreachable = 3
)

// programs are those that a release has.
var programs = []string{"github.com/antrail/antrail/cmd/antrail", "github.com/antrail/antrail/cmd/antrail-cni"}

// errUnreachable says that Go could not list or fetch the modules.
var errUnreachable = errors.New("the modules are not all in the module cache, and the Go module proxy cannot be reached, so no licence was checked")

func main() {
	check := flag.Bool("check", false, "compare the file, write nothing")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "licences: the name of the file is needed")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		if errors.Is(err, errUnreachable) {
			os.Exit(exitUnreachable)
		}
		os.Exit(exitRefused)
	}
}

// run writes or compares the file.
func run(file string, check bool) error {
	mods, err := linked(programs, []string{"amd64", "arm64"})
	if err != nil {
		return err
	}
	text, err := notices(mods)
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(file, text, 0o644)
	}
	have, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, text) {
		return fmt.Errorf("%s does not match the linked modules: run `make licences`, and commit it", file)
	}
	return nil
}
