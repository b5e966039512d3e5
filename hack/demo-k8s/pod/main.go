// Pod is the one program of the containers in `make demo-k8s`:
//
//	pod pause              waits: the sandbox's program
//	pod serve              HTTP on 8080: the pod's name and the client's address;
//	                       UDP on 8081: the same to each datagram
//	pod dns                DNS on 53, UDP: Services of the cluster, from the API
//	pod get URL            prints a server's answer; exit code 1 after 3 seconds
//	pod udp ADDRESS:PORT   the same for one datagram
//	pod hold ADDRESS:PORT  sends requests over one connection until its input ends;
//	                       prints the number of answers, and the longest wait for one
//	pod resolve NAME       prints the addresses of a name, and its canonical name
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// waitAtMost is how long an answer may take.
const waitAtMost = 3 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pod:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	work := map[string]func(string) error{"get": get, "udp": datagram, "hold": hold, "resolve": resolve}
	serve := map[string]func() error{"pause": pause, "serve": serveName, "dns": serveDNS}
	switch {
	case len(args) == 1 && serve[args[0]] != nil:
		return serve[args[0]]()
	case len(args) == 2 && work[args[0]] != nil:
		return work[args[0]](args[1])
	}
	return errors.New("pause, serve, dns, get URL, udp ADDRESS:PORT, hold ADDRESS:PORT or resolve NAME")
}

// pause waits for the end, and reaps processes whose parents are gone.
func pause() error {
	signal.Ignore(syscall.SIGCHLD)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
	return nil
}

// greeting is a server's answer to a client.
func greeting(client string) string {
	name, _ := os.Hostname()
	host, _, _ := net.SplitHostPort(client)
	return name + " " + host + "\n"
}

func serveName() error {
	c, err := net.ListenPacket("udp", ":8081")
	if err != nil {
		return err
	}
	go runEcho(c)
	stopOnSignal()
	return http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, greeting(r.RemoteAddr))
	}))
}

// stopOnSignal ends the program at SIGTERM, which the first process of a namespace
// would ignore.
func stopOnSignal() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	go runEnd(end)
}

func runEnd(end <-chan os.Signal) {
	<-end
	os.Exit(0)
}

func runEcho(c net.PacketConn) {
	b := make([]byte, 1500)
	for {
		_, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		c.WriteTo([]byte(greeting(from.String())), from)
	}
}

// get makes a new connection each time, so that a Service chooses again.
func get(url string) error {
	client := http.Client{Timeout: waitAtMost, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

func datagram(to string) error {
	c, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(waitAtMost))
	if _, err := c.Write([]byte("hello")); err != nil {
		return err
	}
	b := make([]byte, 1500)
	n, err := c.Read(b)
	os.Stdout.Write(b[:n])
	return err
}

func resolve(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), waitAtMost)
	defer cancel()
	alias, err := net.DefaultResolver.LookupCNAME(ctx, name)
	if err != nil {
		return err
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	fmt.Println(alias, strings.Join(addresses, " "))
	return err
}
