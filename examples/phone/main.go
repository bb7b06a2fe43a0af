// Command phone does what the OwnTracks app on a phone does: it connects over
// MQTT and publishes where it is.
//
//	go run ./examples/phone 52.0907 5.1215
//
// With -user and -password it signs in; -broker is NATS' MQTT listener.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

func main() {
	broker := flag.String("broker", "tcp://127.0.0.1:1883", "MQTT address; ssl://host:8883 with TLS")
	user := flag.String("user", "ann", "user: the second part of the topic, and what it signs in as if there is a password")
	device := flag.String("device", "phone", "device: the third part of the topic")
	password := flag.String("password", os.Getenv("MQTT_PASSWORD"), "password (MQTT_PASSWORD)")
	flag.Parse()
	log.SetFlags(0)
	if flag.NArg() != 2 {
		log.Fatal("usage: phone [flags] LAT LON")
	}
	if err := publish(*broker, *user, *device, *password, flag.Arg(0), flag.Arg(1)); err != nil {
		log.Fatal(err)
	}
}

func publish(broker, user, device, password, lat, lon string) error {
	la, err := strconv.ParseFloat(lat, 64)
	if err != nil {
		return err
	}
	lo, err := strconv.ParseFloat(lon, 64)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(map[string]any{
		"_type": "location", "lat": la, "lon": lo, "tst": time.Now().Unix(), "acc": 10, "tid": "an", "batt": 80,
	})
	if err != nil {
		return err
	}
	options := mqtt.NewClientOptions().AddBroker(broker).SetClientID(user + "-" + device).SetConnectTimeout(5 * time.Second)
	if password != "" {
		options.SetUsername(user).SetPassword(password)
	}
	client := mqtt.NewClient(options)
	if err := done(client.Connect()); err != nil {
		return fmt.Errorf("connecting to %s: %w", broker, err)
	}
	defer client.Disconnect(250)
	topic := "owntracks/" + user + "/" + device
	if err := done(client.Publish(topic, 1, false, payload)); err != nil {
		return fmt.Errorf("publishing to %s: %w", topic, err)
	}
	fmt.Printf("%s %s\n", topic, payload)
	return nil
}

// done waits for what the client has been asked to do.
func done(t mqtt.Token) error {
	if !t.WaitTimeout(10 * time.Second) {
		return fmt.Errorf("no answer within 10 s")
	}
	return t.Error()
}
