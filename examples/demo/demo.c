/* The main job, seen: a Metal kernel renders a picture on this machine's CPU, grid_sample bends it, its
 * gradient is checked, two linear algebra kernels follow, and a model finds the cars of a street. Every step
 * is compared with float64, or with the truth.
 *
 *     smelt_demo [FOLDER]        writes scene.png, warped.png and cars.png to FOLDER (default: the current
 * one)
 */
#include "demo.h"

#include <stdio.h>

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : ".";
    printf("smelt %s, device cpu: %s\n\n", smelt_version(), smelt_device_description("cpu"));
    smelt_array *picture = render_scene();
    write_picture(picture, folder, "scene.png");
    smelt_array *warped = warp_picture(picture);
    write_picture(warped, folder, "warped.png");
    check_gradient(picture);
    check_linear_algebra();
    find_cars(folder);
    smelt_array_release(picture);
    smelt_array_release(warped);
    printf("\n* compiled before: from the disk cache\nwritten: %s/scene.png, %s/warped.png, "
           "%s/cars.png\n",
           folder, folder, folder);
    if (steps_wrong()) {
        printf("%d of %d steps are WRONG\n", steps_wrong(), steps_done());
        return 1;
    }
    printf("all %d steps are right\n", steps_done());
    return 0;
}
